def decide_by_statistics(*a): raise NotImplementedError
def module_by_statistics(*a): raise NotImplementedError
