internal import Crypto
internal import Wire

extension SwiftCryptography: IDTokenCryptography {
  func digest(_ hash: IDTokenHash, of bytes: [UInt8]) -> [UInt8] {
    switch hash {
    case .sha256: Array(SHA256.hash(data: bytes))
    case .sha384: Array(SHA384.hash(data: bytes))
    case .sha512: Array(SHA512.hash(data: bytes))
    }
  }
}
