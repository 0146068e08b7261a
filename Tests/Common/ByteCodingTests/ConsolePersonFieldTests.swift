import ByteCoding
import Testing

@Suite("The person of a console in a request")
struct ConsolePersonFieldTests {
  @Test(
    "A name comes back as it was",
    arguments: ["CN=ada", "ada (user 1)", "Zoë", "a%b", "家", String(repeating: "x", count: 384)])
  func roundTrip(_ name: String) {
    let value = ConsolePersonField.encode(name)
    #expect(value.utf8.allSatisfy { (0x21...0x7E).contains($0) })
    #expect(ConsolePersonField.decode(value) == name)
  }

  @Test(
    "A name that a log would show as something else is none",
    arguments: [
      "", "%", "%4", "%zz", "a b", "a\"b", "%22", "%0A", "%00", "%E2%80%AE", "%FF", "%C3", "a\r\nb", "ä",
      String(repeating: "x", count: 385), String(repeating: "%41", count: 385), "%+1", "%-1",
    ])
  func refused(_ value: String) {
    #expect(ConsolePersonField.decode(value) == nil)
  }
}
