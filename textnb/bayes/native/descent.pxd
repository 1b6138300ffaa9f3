# What the build wrote into the extension: the digest of the source that it compiled.
cdef extern from *:
    """
    #ifndef TEXTNB_SOURCE
    #define TEXTNB_SOURCE ""
    #endif
    """
    const char* TEXTNB_SOURCE
