"""Twins of functions of linear algebra."""

from __future__ import annotations

from typing import Any

import torch

from msprobe_ms.frameworks.pytorch.mindspore_twins.common import like, sizes
from msprobe_ms.frameworks.pytorch.mindspore_twins.registry import twin


@twin("Functional.matrix_determinant", "Tensor.matrix_determinant")
def matrix_determinant(input: Any) -> Any:
    return torch.linalg.det(input)


@twin("Functional.log_matrix_determinant", "Tensor.log_matrix_determinant")
def log_matrix_determinant(input: Any) -> Any:
    return tuple(torch.linalg.slogdet(input))


@twin("Functional.matrix_solve")
def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False) -> Any:
    return torch.linalg.solve(matrix.mH if adjoint else matrix, rhs)


@twin("Functional.lstsq", "Tensor.lstsq")
def lstsq(input: Any, A: Any) -> Any:
    right = A if A.dim() > 1 else A.unsqueeze(1)
    return torch.linalg.lstsq(input, right).solution


@twin("Tensor.lu_solve")
def lu_solve(self: Any, LU_data: Any, LU_pivots: Any) -> Any:
    return torch.lu_solve(self, LU_data, LU_pivots)


@twin("Tensor.addr")
def tensor_addr(self: Any, vec1: Any, vec2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    return torch.addr(self, vec1, vec2, beta=beta, alpha=alpha)


@twin("Mint.addr_")
def addr_in_place(input: Any, vec1: Any, vec2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    return input.addr_(vec1, vec2, beta=beta, alpha=alpha)


@twin("Functional.pinv")
def pinv(x: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    return torch.linalg.pinv(x, atol=atol, rtol=rtol, hermitian=hermitian)


@twin("Functional.svd", "Tensor.svd")
def svd(input: Any, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """Singular values, left and right vectors; the vectors only up to a sign each."""
    if not compute_uv:
        return torch.linalg.svdvals(input)
    left, values, right = torch.linalg.svd(input, full_matrices)
    return values, left, right.mH


@twin("Tensor.qr")
def tensor_qr(self: Any, some: bool = True) -> Any:
    return tuple(torch.linalg.qr(self, "reduced" if some else "complete"))


@twin("Functional.cholesky_inverse", "Tensor.cholesky_inverse")
def cholesky_inverse(input_x: Any, upper: bool = False) -> Any:
    """As MindSpore, takes the whole of the factor, which has zeros in its other half."""
    return torch.linalg.inv(input_x.mT @ input_x if upper else input_x @ input_x.mT)


@twin("Functional.dot", "Tensor.dot")
def dot(input: Any, other: Any) -> Any:
    """The last axis of one with the last but one of the other."""
    return torch.tensordot(input, other, ([-1], [-2]))


@twin("Functional.vander")
def vander(x: Any, N: int | None = None) -> Any:
    powers = torch.arange((x.shape[0] if N is None else N) - 1, -1, -1)
    return x.unsqueeze(-1) ** powers


@twin("Functional.tensor_dot")
def tensor_dot(x1: Any, x2: Any, axes: Any) -> Any:
    return torch.tensordot(x1, x2, axes)


@twin("Functional.batch_dot")
def batch_dot(x1: Any, x2: Any, axes: Any = None) -> Any:
    if axes is None:
        axes = (x1.dim() - 1, max(1, x2.dim() - 2))
    first, second = (axes, axes) if isinstance(axes, int) else axes
    left = torch.movedim(x1, first, -1)
    right = torch.movedim(x2, second, -1)
    rows = [torch.tensordot(one, other, ([-1], [-1])) for one, other in zip(left, right, strict=True)]
    result = torch.stack(rows)
    return result.unsqueeze(-1) if result.dim() == 1 else result


@twin("Functional.matrix_band_part")
def matrix_band_part(x: Any, lower: Any, upper: Any) -> Any:
    rows, columns = (torch.arange(size) for size in x.shape[-2:])
    apart = rows.unsqueeze(1) - columns.unsqueeze(0)
    lower, upper = int(lower), int(upper)
    kept = ((lower < 0) | (apart <= lower)) & ((upper < 0) | (-apart <= upper))
    return torch.where(kept, x, torch.zeros_like(x))


@twin("Functional.matrix_diag")
def matrix_diag(
    x: Any, k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Any:
    """One diagonal; bands of several are not known here."""
    (offset,) = sizes([[k] if isinstance(k, int) else k])
    square = torch.diag_embed(x, offset)
    where = torch.diag_embed(torch.ones_like(x), offset)
    rows = square.shape[-2] if num_rows in (-1, None) else int(num_rows)
    columns = square.shape[-1] if num_cols in (-1, None) else int(num_cols)
    padding = (0, columns - square.shape[-1], 0, rows - square.shape[-2])
    square, where = (torch.nn.functional.pad(each, padding) for each in (square, where))
    return torch.where(where != 0, square, like(padding_value, x))


@twin("Functional.matrix_diag_part")
def matrix_diag_part(x: Any, k: Any, padding_value: Any, align: str = "RIGHT_LEFT") -> Any:
    """One diagonal; bands of several are not known here."""
    (offset,) = sizes([[k] if isinstance(k, int) else k])
    return torch.diagonal(x, offset, -2, -1)


@twin("Functional.matrix_set_diag")
def matrix_set_diag(x: Any, diagonal: Any, k: Any = 0, align: str = "RIGHT_LEFT") -> Any:
    """One diagonal; bands of several are not known here."""
    (offset,) = sizes([[k] if isinstance(k, int) else k])
    return torch.diagonal_scatter(x, diagonal, offset, -2, -1)


@twin("Tensor.trace")
def tensor_trace(self: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: torch.dtype | None = None) -> Any:
    return torch.diagonal(self, offset, axis1, axis2).sum(-1, dtype=dtype)


@twin("Tensor.norm")
def tensor_norm(
    self: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Any:
    return torch.linalg.norm(self, ord, dim, keepdim, dtype=dtype)


@twin("Functional.einsum_ext")
def einsum(equation: str, *operands: Any) -> Any:
    return torch.einsum(equation, *operands)


@twin("Tensor.triangular_solve", "Mint.triangular_solve")
def triangular_solve(b: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:
    return tuple(torch.triangular_solve(b, A, upper, transpose, unitriangular))
