import Testing

@testable import TransportEngine

@Suite("Keys of client certificates")
struct CertificateGuardTests {
  private static let curveKey: [UInt8] = [6, 7, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
  private static let sm2: [UInt8] = [6, 8, 0x2A, 0x81, 0x1C, 0xCF, 0x55, 0x01, 0x82, 0x2D]
  private static let p256: [UInt8] = [6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]

  private static func guarded(_ message: [UInt8]) -> [UInt8] {
    var message = message
    message.withUnsafeMutableBytes { CertificateGuard.spoilUnnamedCurves(in: $0) }
    return message
  }

  @Test("A key on a curve with a name is left alone")
  func named() {
    let message = [11, 0] + Self.curveKey + Self.p256 + [3, 0x42, 0, 4]
    #expect(Self.guarded(message) == message)
  }

  @Test("A key with parameters gets another kind", arguments: [[0x30, 0x81], [0x3F, 0x10], [5, 0], []] as [[UInt8]])
  func unnamed(_ parameters: [UInt8]) {
    let first = [11, 0] + Self.curveKey + Self.p256 + Self.curveKey + parameters
    var expected = first
    expected[2 + Self.curveKey.count + Self.p256.count + 3] = 0
    #expect(Self.guarded(first) == expected)
  }

  @Test("A key of SM2 gets another kind")
  func sm2() {
    #expect(Self.guarded(Self.sm2 + [0x30, 1]) == [6, 8, 0x2A, 0] + Self.sm2[4...] + [0x30, 1])
  }

  @Test("The end of a message within an identifier is not passed")
  func short() {
    for count in 0..<Self.curveKey.count {
      let message = Array(Self.curveKey.prefix(count))
      #expect(Self.guarded(message) == message)
    }
  }
}
