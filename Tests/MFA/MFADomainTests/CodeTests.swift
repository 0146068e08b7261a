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

  @Test("A-096 a code that begins with zeros keeps them")
  func zeros() {
    // 0x0101010101010101 of 2^64 is 3921.6 of a million. The generator would reject zero bytes without end.
    let draws = Entropy { Array(repeating: 1, count: $0) }
    #expect(OneTimeCode.makeDigits(6, draws) == "003921")
  }
}
