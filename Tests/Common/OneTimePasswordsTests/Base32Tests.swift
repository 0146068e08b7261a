import OneTimePasswords
import Testing

@Suite("Base32")
struct Base32Tests {
  @Test(
    "D-010 D-011 the vectors of RFC 4648, in both directions",
    arguments: [
      ("", ""), ("MY======", "f"), ("MZXQ====", "fo"), ("MZXW6===", "foo"), ("MZXW6YQ=", "foob"), ("MZXW6YTB", "fooba"),
      ("MZXW6YTBOI======", "foobar"),
    ])
  func vectors(_ text: String, _ bytes: String) throws {
    #expect(Base32.encode(bytes.utf8, padded: true) == text)
    let unpadded = text.filter { $0 != "=" }
    #expect(Base32.encode(bytes.utf8) == unpadded)
    for form in [text, unpadded, text.lowercased(), unpadded.lowercased()] {
      #expect(try Base32.decode(form) == Array(bytes.utf8))
    }
  }

  @Test(
    "D-013 T-36 another character is refused and named", arguments: ["0", "1", "8", "9", "ß", "ı", "ſ", " ", "-", "É"])
  func characters(_ character: Character) {
    #expect(throws: Base32Error.invalidCharacter(character)) { try Base32.decode("MZXW\(character)6YTB") }
  }

  @Test(
    "T-36 inner padding, incomplete padding, impossible lengths and bits after the last byte are refused",
    arguments: [
      ("MZ=W6YTB", Base32Error.invalidCharacter("=")), ("MY=", .padding), ("MY=====", .padding),
      ("M=======", .padding), ("=", .padding), ("========", .padding), ("M", .length(1)), ("MZX", .length(3)),
      ("MZXW6Y", .length(6)), ("MZ", .trailingBits), ("MZXR", .trailingBits), ("MZXW7", .trailingBits),
    ])
  func malformed(_ text: String, _ error: Base32Error) {
    #expect(throws: error) { try Base32.decode(text) }
  }

  @Test("Every sequence of bytes is read as it was written, in one form only")
  func roundTrips() throws {
    var generator = SystemRandomNumberGenerator()
    for length in 0..<200 {
      let bytes = (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
      let text = Base32.encode(bytes)
      #expect(try Base32.decode(text) == bytes)
      // Any other last digit is another secret or an error.
      guard let last = text.last else { continue }
      for other in "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" where other != last {
        #expect((try? Base32.decode(text.dropLast() + String(other))) != bytes)
      }
    }
  }

  @Test("D-014 spaces and dashes of a pasted secret are left out, by a step of its own")
  func separators() throws {
    let text = Base32.withoutSeparators(" jbsw y3dp-ehpk\u{00A0}3pxp\n")
    #expect(text == "jbswy3dpehpk3pxp")
    #expect(try Base32.decode(text).count == 10)
  }

  @Test("A secret of a service may have bits after its last byte, and any padding at its end")
  func secrets() throws {
    let secret = try Base32.decodeSecret("S46SQCPPTCNPROMHWYBDCTBZXV")
    #expect(secret.count == 16)
    // The report says that this code was right at this time.
    let code = OneTimePassword.standard.code(secret: secret, counter: 1_612_380_872 / 30)
    #expect(code == "100172")
    for text in ["MZ", "MZ=", "mz======", "M\u{200B}Z\u{2212}\u{FEFF}"] {
      #expect(try Base32.decodeSecret(text) == Array("f".utf8))
    }
    // A digit that is missing or wrong is no such bit.
    #expect(throws: Base32Error.length(3)) { try Base32.decodeSecret("MZX") }
    #expect(throws: Base32Error.invalidCharacter("=")) { try Base32.decodeSecret("M=ZXW") }
    #expect(throws: Base32Error.invalidCharacter("1")) { try Base32.decodeSecret("MZ1") }
  }

  // With the square of the number of marks it would take some minutes.
  @Test("a secret whose first letter has many combining marks is refused at once", .timeLimit(.minutes(1)))
  func combiningMarks() {
    let text = "M" + String(repeating: "\u{301}\u{316}", count: 200_000)
    do throws(Base32Error) {
      _ = try Base32.decodeSecret(text)
      Issue.record("accepted")
    } catch {
      #expect("\(error)".utf8.count < 100)
    }
  }

  @Test("D-061 an error says what to do, and has no more of the secret than one character")
  func errors() {
    let texts = [Base32Error.invalidCharacter("0"), .invalidCharacter("ß"), .padding, .length(3), .trailingBits]
      .map { "\($0)" }
    #expect(texts.allSatisfy { !$0.isEmpty && $0.utf8.count < 100 } && Set(texts).count == texts.count)
  }
}
