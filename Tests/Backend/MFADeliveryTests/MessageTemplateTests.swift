import ByteCoding
import Foundation
@testable import MFADelivery
import MFADomain
import MFAFixtures
import Testing

@Suite("Templates of messages")
struct MessageTemplateTests {
  private func templates(_ files: [String: String], service: String = "Söhne & Co") throws -> MessageTemplates {
    try MessageTemplates(files.sorted { $0.key < $1.key }.map { ($0.key, Array($0.value.utf8)) }, service: service)
  }

  private func reasons(_ files: [String: String]) -> [String] {
    do {
      _ = try templates(files)
      return []
    } catch {
      return (error as? MessageTemplates.Faults)?.reasons ?? ["\(error)"]
    }
  }

  private func message(
    _ languages: String = "", _ content: OutgoingMessage.Content = .code("042042"), byEmail: Bool = false
  ) throws -> OutgoingMessage {
    OutgoingMessage(
      destination: byEmail ? .email(try EmailAddress("ada@example.org")) : .phone(try PhoneNumber("+1234567890")),
      content: content, lifetime: .seconds(300), languages: Languages(acceptLanguage: languages))
  }

  private func body(_ message: OutgoingMessage, _ templates: MessageTemplates) -> String {
    MessageText(message: message, domain: "example.com", templates: templates).body
  }

  @Test(
    "the field Accept-Language gives the languages in their order, and malformed elements are ignored",
    arguments: [
      ("de-CH, fr;q=0.9, en;q=0.8", ["de-ch", "fr", "en"]), ("en;q=0.1,de;q=0.25", ["de", "en"]),
      ("*, de", ["de"]), ("de;q=0, en", ["en"]), ("de;q=1.5, en", ["en"]), ("DE , de;q=0.3", ["de"]),
      ("", []), ("x, 12, d-e, de_CH, \u{E4}\u{F6}, de--ch, de;q=0.1234", []), ("de;q=1.000;x=y, en;q=0.001", ["en"]),
      ("aa,bb,cc,dd,ee,ff,gg,hh,ii,jj", ["aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh"]),
      (String(repeating: "a", count: 5000) + ",de", []),
      // Cut after fr, which would be the best language without its weight; and after a whole element.
      ("en;q=0.9," + String(repeating: " ", count: 245) + "fr;q=0.1", ["en"]),
      ("en;q=0.9," + String(repeating: " ", count: 245) + "fr,de", ["fr", "en"]),
      ("en;q=0.9," + String(repeating: " ", count: 245) + "fr", ["fr", "en"]),
    ])
  func languages(_ field: String, _ tags: [String]) {
    #expect(Languages(acceptLanguage: field).tags == tags)
  }

  @Test("a language is looked up with fewer and fewer subtags, and the default is for all others")
  func lookup() throws {
    let templates = try templates([
      "code.sms.txt": "default {{code}}", "code.sms.de.txt": "deutsch {{code}}",
      "code.sms.zh-Hant.txt": "繁體 {{code}}\n",
    ])
    for (field, start) in [
      ("de-CH-1996", "deutsch"), ("fr, de;q=0.5", "deutsch"), ("zh-Hant-x-tw", "繁體"), ("zh-Hans", "default"),
      ("fr", "default"), ("", "default"),
    ] { #expect(body(try message(field), templates) == "\(start) 042042", "\(field)") }
    #expect(templates.languages == ["de", "zh-hant"] && templates.count == 3)
    // The other messages have their built-in texts.
    #expect(body(try message("de", byEmail: true), templates).hasPrefix("Your OTP is 042042"))
    #expect(body(try message("de", .recoveryCompleted), templates).contains("was recovered"))
  }

  @Test("each placeholder has its value, and a value begins no line")
  func values() throws {
    let templates = try templates(
      [
        "code.sms.txt": "\u{FEFF}{{code}} {{ minutes }} {{service}}\r\n\r\n@{{domain}} #{{code}}\r\n",
        "recovery-started.email.txt": "Subject: {{service}}\n\n{{stop_code}} {{ready_at}}\n.\n",
      ], service: "A\r\nBcc: x")
    #expect(body(try message(), templates) == "042042 5 A  Bcc: x\n\n@example.com #042042")
    let started = try message("", .recoveryStarted(stopCode: "S1", readyAt: Timestamp(seconds: 0)), byEmail: true)
    let text = MessageText(message: started, domain: "example.com", templates: templates)
    #expect(text.subject == "A  Bcc: x" && text.body == "S1 1970-01-01T00:00:00Z\n.")
  }

  @Test(
    "a file that cannot be used is named with its line and what to write",
    arguments: [
      (
        "code.sms.txt", "Your\n{{cdoe}}",
        "code.sms.txt:2: {{cdoe}} is unknown in this message: use {{code}}, "
          + "{{domain}}, {{minutes}}, {{service}} (did you mean {{code}})"
      ),
      (
        "code.sms.txt", "{{stop_code}} {{code}}",
        "code.sms.txt:1: {{stop_code}} is unknown in this message: use "
          + "{{code}}, {{domain}}, {{minutes}}, {{service}}"
      ),
      ("code.sms.txt", "hello", "code.sms.txt: does not contain {{code}}, without which the message is of no use"),
      ("code.sms.txt", "{{code", "code.sms.txt:1: {{ has no }} in its line"),
      ("code.sms.txt", "a{{code}}\u{1B}[2J", "code.sms.txt:1: contains a control character"),
      ("code.sms.txt", "\n\n", "code.sms.txt: is empty"),
      (
        "code.sms.txt", "{{code}}" + String(repeating: "x", count: 1000),
        "code.sms.txt: is longer than 1000 characters, which is too much for an SMS"
      ),
      (
        "code.email.txt", "{{code}}",
        "code.email.txt:1: must begin with a line `Subject: …` and an empty line, before "
          + "the text"
      ),
      (
        "code.email.txt", "Subject: a\nBcc: b\n\n{{code}}",
        "code.email.txt:1: must begin with a line `Subject: …` and "
          + "an empty line, before the text"
      ),
      ("code.email.txt", "Subject: \n\n{{code}}", "code.email.txt:1: must have a subject of 1 to 150 characters"),
      (
        "sign-in.push.txt", "Subject: Hello\n\n" + String(repeating: "a", count: 301),
        "sign-in.push.txt: is longer than 300 characters, which is too much for a push notification"
      ),
      (
        "notice.push.txt", "Look",
        "notice.push.txt:1: must begin with a line `Subject: …` and an empty line, before the text"
      ),
      ("code.sms.d.txt", "{{code}}", "code.sms.d.txt: has no language tag before .txt: write for example de or pt-BR"),
      (
        "code.sms", "{{code}}",
        "code.sms: is not the name of a template: write MESSAGE.CHANNEL.txt or "
          + "MESSAGE.CHANNEL.LANGUAGE.txt, with one of code.sms, code.email, recovery-started.sms, "
          + "recovery-started.email, recovery-completed.sms, recovery-completed.email, sign-in.push, notice.push "
          + "(did you mean code.sms.txt)"
      ),
    ])
  func faults(_ name: String, _ text: String, _ reason: String) {
    #expect(reasons([name: text]) == [reason])
  }

  @Test("all faults are reported; two names of one template, bytes that are no UTF-8 and too many files are faults")
  func several() throws {
    #expect(reasons(["code.sms.txt": "x", "cod.sms.txt": "{{code}}", "code.sms.de.txt": "{{code}}"]).count == 2)
    #expect(
      reasons(["code.sms.de.txt": "{{code}}", "code.sms.DE.txt": "{{code}}"]) == [
        "code.sms.de.txt: is there twice, in another case"
      ])
    for content in [[0xFF, 0xFE], Array(repeating: 0x61, count: MessageTemplates.largestFile + 1)] as [[UInt8]] {
      #expect(throws: MessageTemplates.Faults.self) { try MessageTemplates([("code.sms.txt", content)], service: "") }
    }
    let many = (0...MessageTemplates.mostFiles).map { ("code.sms.a\($0).txt", Array("{{code}}".utf8)) }
    #expect(throws: MessageTemplates.Faults.self) { try MessageTemplates(many, service: "") }
  }

  @Test("the log has the text of the template in the recipient's language")
  func log() throws {
    let log = CapturedLog()
    let outbox = LogOutbox(
      logger: log.logger, domain: "example.com", templates: try templates(["code.sms.de.txt": "Ihr Code: {{code}}"]))
    outbox.send(try message("de"))
    outbox.send(try message("fr"))
    #expect(
      log.lines.map(\.message) == [
        "📱 SMS to +1234567890: Ihr Code: 042042", "📱 SMS to +1234567890: Your OTP is 042042",
      ])
  }

  @Test("a subject beyond ASCII becomes encoded words of whole characters, and a line end never begins a field")
  func subject() throws {
    #expect(EncodedWords.text("Your code") == "Your code")
    let long = String(repeating: "Prüfung ", count: 12)
    let lines = EncodedWords.text(long).components(separatedBy: "\r\n ")
    #expect(lines.count > 1 && lines.allSatisfy { $0.utf8.count <= 75 })
    let field = ("Subject: " + EncodedWords.text(long)).components(separatedBy: "\r\n")
    #expect(field.allSatisfy { $0.utf8.count <= 76 }, "\(field)")
    let decoded = try lines.map { word in
      try #require(Base64.decode(String(word.dropFirst("=?utf-8?B?".count).dropLast(2))))
    }
    #expect(String(decoding: decoded.joined(), as: UTF8.self) == long)
    #expect(!EncodedWords.text("a\r\nBcc: x").contains("\nBcc"))
  }
}
