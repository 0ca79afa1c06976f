"""How well sixteen numbers estimate how far apart two tensors are (see `arrays.sketch`)."""

#: Times that a sketch may estimate a deviation larger, or smaller, than it is.
ESTIMATE = 2.0
#: Times that of two deviations in one proportion one may be estimated larger than by the other: both are of sixteen
#: numbers, so that the ratio of their squares has an F distribution. Beyond 2 is one in a hundred, which any network
#: has; beyond 4 one in a million.
ESTIMATE_OF_BOTH = 4.0
