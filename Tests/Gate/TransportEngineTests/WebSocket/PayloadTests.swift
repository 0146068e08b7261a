import Testing
import Transport

@testable import TransportEngine

@Suite struct ClosePayloadTests {
  @Test("The valid codes are those of the RFC, the registry and the open ranges")
  func codes() throws {
    let allowed = Set(UInt16(1000)...1003).union(1007...1014).union(3000...4999)
    for code in UInt16.min...UInt16.max {
      let decoded = try? ClosePayload(decoding: closePayload(code))
      #expect((decoded != nil) == allowed.contains(code))
    }
  }

  @Test("A payload is read and written as in RFC 6455")
  func coding() throws {
    #expect(try ClosePayload(decoding: []) == ClosePayload(nil))
    #expect(try ClosePayload(decoding: closePayload(1000)) == ClosePayload(.normal))
    #expect(
      try ClosePayload(decoding: closePayload(3003, "revok\u{e9}")) == ClosePayload(.revoked, reason: "revok\u{e9}"))
    #expect(ClosePayload(nil, reason: "lost without a code").encoded == [])
    #expect(ClosePayload(.goingAway, reason: "bye").encoded == closePayload(1001, "bye"))
  }

  @Test("A malformed payload is refused with the close code to send")
  func refused() {
    #expect(throws: ClosePayloadError.length) { try ClosePayload(decoding: [3]) }
    #expect(throws: ClosePayloadError.code) { try ClosePayload(decoding: closePayload(1005)) }
    #expect(throws: ClosePayloadError.reason) { try ClosePayload(decoding: closePayload(1000) + [0xC3]) }
    #expect(ClosePayloadError.allCases.map(\.closeCode) == [.protocolError, .protocolError, .invalidPayload])
  }

  @Test("A reason that is too long is cut between two characters")
  func cut() throws {
    for padding in 119...125 {
      let reason = String(repeating: "a", count: padding) + "\u{1F600}\u{e9}"
      let bytes = ClosePayload(.normal, reason: reason).encoded
      #expect(bytes.count <= 125 && bytes.count >= 122)
      #expect(reason.hasPrefix(try ClosePayload(decoding: bytes).reason))
    }
  }
}

@Suite struct UTF8ValidatorTests {
  private func isValid(_ bytes: [UInt8], cut: Int = 0) -> Bool {
    var validator = UTF8Validator()
    let first = bytes[..<cut].withUnsafeBufferPointer { validator.consume($0) }
    let second = bytes[cut...].withUnsafeBufferPointer { validator.consume($0) }
    return first && second && validator.isComplete
  }

  @Test(
    "The result for every first and second byte, with up to two continuation bytes, is that of the standard library")
  func sequences() {
    for first in UInt8.min...UInt8.max {
      for second in UInt8.min...UInt8.max {
        for suffix in [[], [0x80], [0xBF, 0x80]] as [[UInt8]] {
          let bytes = [first, second] + suffix
          let expected = String(validating: bytes, as: UTF8.self) != nil
          if isValid(bytes) != expected { Issue.record("\(bytes) is \(expected ? "valid" : "invalid")") }
        }
      }
    }
  }

  @Test("The result does not depend on where the bytes are cut")
  func cuts() {
    let text = Array("plain ASCII, long enough for words: \u{e9}\u{20AC}\u{1F600}\u{10FFFF} and on and on and on".utf8)
    for cut in 0...text.count { #expect(isValid(text, cut: cut)) }
    for index in text.indices where text[index] >= 0x80 {
      var damaged = text
      damaged[index] = 0xC0
      for cut in 0...text.count { #expect(!isValid(damaged, cut: cut)) }
    }
  }

  @Test(
    "Bytes are refused as soon as they are invalid",
    arguments: [
      [0x80], [0xC0], [0xC1], [0xF5], [0xFF], [0xE0, 0x9F], [0xED, 0xA0], [0xF0, 0x8F], [0xF4, 0x90], [0xC3, 0x28],
      [0xE2, 0x82, 0x28],
    ] as [[UInt8]])
  func early(bytes: [UInt8]) {
    var validator = UTF8Validator()
    for (index, byte) in bytes.enumerated() {
      #expect([byte].withUnsafeBufferPointer { validator.consume($0) } == (index < bytes.count - 1))
    }
    #expect([0x41].withUnsafeBufferPointer { !validator.consume($0) } && !validator.isComplete)
  }

  @Test("An unfinished character is incomplete")
  func unfinished() {
    var validator = UTF8Validator()
    #expect([0xE2, 0x82].withUnsafeBufferPointer { validator.consume($0) } && !validator.isComplete)
    #expect([0xAC].withUnsafeBufferPointer { validator.consume($0) } && validator.isComplete)
  }
}
