import MFADomain
import Testing

@Suite("Numbers and addresses")
struct ContactTests {
  @Test(
    "numbers of small countries and numbers with space around them are numbers",
    arguments: [
      ("+6834567", "+6834567"), ("+6903456", "+6903456"), (" +1234567890\n", "+1234567890"),
      ("+123456789012345", "+123456789012345"),
    ])
  func numbers(_ text: String, _ number: String) throws { #expect(try PhoneNumber(text).text == number) }

  @Test(
    "what E.164 does not write is refused",
    arguments: ["+123", "+1234567890123456", "+0123456789", "1234567890", "+12 34567890", "++1234567", "+１２３４５６７", ""])
  func noNumbers(_ text: String) { #expect(throws: InvalidValue.self) { try PhoneNumber(text) } }

  @Test(
    "addresses may have space around them, and letters of all scripts",
    arguments: [
      (" ada@example.com ", "ada@example.com"), ("ada@example.com\r\n", "ada@example.com"),
      ("jörg@example.com", "jörg@example.com"), ("jo\u{308}rg@example.com", "jörg@example.com"),
      ("用户@例子.广告", "用户@例子.广告"), ("ada@bücher.example", "ada@bücher.example"),
    ])
  func addresses(_ text: String, _ address: String) throws {
    let read = try EmailAddress(text)
    #expect(Array(read.text.utf8) == Array(address.utf8))
    #expect(read.needsUTF8 == !address.utf8.allSatisfy { $0 < 0x80 })
    #expect(try EmailAddress(trusted: read.text) == read)
  }

  @Test(
    "what could end a header or a command, or does not show, is refused",
    arguments: [
      "ada lovelace@example.com", "ada@exa mple.com", "ada\r\nRCPT TO:<x>@example.com", "ada\u{A0}b@example.com",
      "ada\u{200B}@example.com", "ada\u{202E}@example.com", "ada@example\u{2028}.com", "ada＠example.com",
      "ada@例子。广告", "ada\u{FE0F}@example.com", "<ada@example.com>", "ada@-bücher.example", "😀@example.com",
      String(repeating: "ä", count: 33) + "@example.com", "a@" + String(repeating: "ä.", count: 90) + "example.com",
    ])
  func noAddresses(_ text: String) { #expect(throws: InvalidValue.self) { try EmailAddress(text) } }
}
