// Declarations for type checks, not an implementation. On Apple's platforms this module of swift-crypto is CryptoKit.
@_exported import CryptoKit
