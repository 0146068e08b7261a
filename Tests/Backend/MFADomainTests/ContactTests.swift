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

  @Test(
    "a part that begins with a mark, which Swift reads as one character with the sign before it, is refused",
    arguments: [
      "a@\u{301}b.com", "a@\u{903}b.com", "a.\u{301}b@x.com", "x@a.\u{301}b.com", "x@b.\u{301}com", "\u{301}a@x.com",
      "a@\u{FF9E}b.com", "a@\u{301}", "a@\u{301}\u{301}.com", "\u{301}@x.com",
    ])
  func marks(_ text: String) { #expect(throws: InvalidValue.self) { try EmailAddress(text) } }

  @Test(
    "an address is divided at the byte of its sign, whatever the letters next to it",
    arguments: [
      // Swift reads the letter dot reph and the sign after it as one character.
      ("a\u{D4E}@example.com", "example.com", "a***@example.com"),
      ("\u{D4E}@example.com", "example.com", "\u{D4E}***@example.com"),
      ("ada@example.com", "example.com", "a***@example.com"), ("jörg@例子.广告", "例子.广告", "j***@例子.广告"),
    ])
  func parts(_ text: String, _ domain: String, _ masked: String) throws {
    let address = try EmailAddress(text)
    #expect(Array(address.domain.utf8) == Array(domain.utf8))
    #expect(Array(address.masked.utf8) == Array(masked.utf8))
  }

  @Test("a stored address that an older version accepted is read and divided as any other")
  func storedMarks() throws {
    let address = try EmailAddress(trusted: "a@\u{301}b.com")
    #expect(Array(address.domain.utf8) == Array("\u{301}b.com".utf8))
    #expect(address.masked.utf8.starts(with: "a***@".utf8))
    #expect(throws: InvalidValue.self) { try EmailAddress(trusted: "a\u{301}.com") }
  }
}
