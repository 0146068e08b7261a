import Transport

@testable import TransportEngine

/// The masking key of the examples in RFC 6455, in memory order.
let exampleKey = MaskingKey(UInt32(littleEndian: 0x3D21_FA37))

/// Returns the bytes of a frame, written without the encoder so that they can test it. Masked with the bytes of
/// `exampleKey`, unless the frame is a server's.
func frame(_ first: UInt8, _ payload: [UInt8] = [], masked: Bool = true) -> [UInt8] {
  let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
  let maskBit: UInt8 = masked ? 0x80 : 0
  var bytes = [first]
  switch payload.count {
  case ...125: bytes.append(maskBit | UInt8(payload.count))
  case ...0xFFFF: bytes += [maskBit | 126] + (0..<2).reversed().map { UInt8(payload.count >> ($0 * 8) & 0xFF) }
  default: bytes += [maskBit | 127] + (0..<8).reversed().map { UInt8(payload.count >> ($0 * 8) & 0xFF) }
  }
  return masked ? bytes + key + payload.enumerated().map { $1 ^ key[$0 % 4] } : bytes + payload
}

func frame(_ first: UInt8, _ text: String, masked: Bool = true) -> [UInt8] {
  frame(first, Array(text.utf8), masked: masked)
}

/// Returns the payload of a Close frame, written without the encoder.
func closePayload(_ code: UInt16, _ reason: String = "") -> [UInt8] {
  [UInt8(code >> 8), UInt8(code & 0xFF)] + Array(reason.utf8)
}

extension FrameHeader {
  static func decode(_ bytes: [UInt8], allowing reserved: ReservedBits = []) -> FrameDecode {
    bytes.withUnsafeBytes { decode($0, allowing: reserved) }
  }

  var encoded: [UInt8] {
    var bytes: [UInt8] = []
    append(to: &bytes)
    return bytes
  }
}

extension WebSocketEndpoint {
  mutating func receive(_ bytes: [UInt8]) -> [Action] { bytes.withUnsafeBytes { receive($0) } }
}
