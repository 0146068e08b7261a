import MFADomain
import Testing

@Suite("Codes")
struct CodeTests {
  @Test("A-096 a code has six digits, and in every place each digit is equally likely")
  func uniform() {
    let count = 60_000
    var tally = Array(repeating: Array(repeating: 0, count: 10), count: 6)
    for _ in 0..<count {
      let digits = OneTimeCode.makeDigits(6, .system).utf8.map { Int($0) - 0x30 }
      guard digits.count == 6, digits.allSatisfy((0...9).contains) else { return #expect(digits.count == 6) }
      for (place, digit) in digits.enumerated() { tally[place][digit] += 1 }
    }
    let expected = Double(count) / 10
    for place in tally {
      let chiSquared = place.reduce(0) { $0 + (Double($1) - expected) * (Double($1) - expected) / expected }
      // With nine degrees of freedom, one run in a hundred million exceeds this bound.
      #expect(chiSquared < 57)
    }
  }

  @Test(
    "a code is the same with each separator, in each case and width",
    arguments: [
      "123456", "123 456", "123-456", "123\u{A0}456", "123\u{202F}456\n", "\u{FEFF}123\u{200B}456\r\n",
      "１２３４５６", "１２３\u{3000}４５６", "123\u{2013}456", "１２３－４５６", "1 2 3 4 5 6",
    ])
  func typed(_ text: String) throws {
    #expect(try CodeGuess(text).text == "123456")
    #expect(try CodeGuess("abcd" + text).text == "ABCD123456")
  }

  @Test(
    "what is no code stays none",
    arguments: [
      "", " ", "-\u{A0}\n", String(repeating: "1", count: 33),
      String(repeating: " ", count: 129) + "1",
    ])
  func noCode(_ text: String) {
    #expect(throws: InvalidValue.self) { try CodeGuess(text) }
  }

  @Test("digits with several meanings are not read as digits", arguments: ["12345²", "12345⑥", "12345.", "12345_"])
  func otherDigits(_ text: String) throws {
    #expect(try CodeGuess(text).text != "123456" && CodeGuess(text).text != "12345")
  }

  @Test("A-096 a code that begins with zeros keeps them")
  func zeros() {
    // 0x0101010101010101 of 2^64 is 3921.6 of a million. The generator would reject zero bytes without end.
    let draws = Entropy { Array(repeating: 1, count: $0) }
    #expect(OneTimeCode.makeDigits(6, draws) == "003921")
  }
}
