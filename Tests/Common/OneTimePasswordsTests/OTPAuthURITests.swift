import Foundation
import OneTimePasswords
import Testing

@Suite("otpauth URIs")
struct OTPAuthURITests {
  @Test("D-053 D-055 an issuer and an account")
  func example1() throws {
    let uri = try parseOTPAuthURI("otpauth://totp/GitHub:user@example.com?secret=JBSWY3DPEHPK3PXP&issuer=GitHub")
    #expect(uri.issuer == "GitHub" && uri.account == "user@example.com" && uri.kind == .totp(period: 30))
    #expect(uri.algorithm == .sha1 && uri.digits == 6)
    #expect(uri.secret == [0x48, 0x65, 0x6C, 0x6C, 0x6F, 0x21, 0xDE, 0xAD, 0xBE, 0xEF])
  }

  @Test("D-054 D-056 all parameters")
  func example2() throws {
    let uri = try parseOTPAuthURI(
      "otpauth://totp/Google:user@gmail.com?secret=JBSWY3DPEHPK3PXP&issuer=Google&algorithm=SHA1&digits=6&period=30")
    #expect(uri.issuer == "Google" && uri.account == "user@gmail.com")
    #expect(uri.algorithm == .sha1 && uri.digits == 6 && uri.kind == .totp(period: 30))
  }

  @Test("D-054 D-057 no issuer")
  func example3() throws {
    let uri = try parseOTPAuthURI("otpauth://totp/Amazon?secret=JBSWY3DPEHPK3PXP&digits=8&algorithm=SHA256")
    #expect(uri.issuer.isEmpty && uri.account == "Amazon" && uri.digits == 8 && uri.algorithm == .sha256)
  }

  @Test(
    "D-058 D-05B D-05C T-42 what is not such a URI is refused by name",
    arguments: [
      ("", OTPAuthError.invalidScheme), ("https://totp/a?secret=MY", .invalidScheme),
      ("otpauth:totp/a", .invalidScheme),
      ("otpauth://totp/a", .missingQueryParameters), ("otpauth://totp/a?", .missingQueryParameters),
      ("otpauth://totp/a?issuer=b", .missingSecret), ("otpauth://totp/a?secret=", .missingSecret),
      ("otpauth://totp/a?secret=%20", .missingSecret), ("otpauth://yaotp/a?secret=MY", .unknownKind("yaotp")),
      ("otpauth://totp/a?secret=M0", .invalidSecret(.invalidCharacter("0"))),
      ("otpauth://totp/a?secret=MY&digits=99", .invalidParameter("digits", "99")),
      ("otpauth://totp/a?secret=MY&digits=4", .invalidParameter("digits", "4")),
      ("otpauth://totp/a?secret=MY&digits=11", .invalidParameter("digits", "11")),
      ("otpauth://totp/a?secret=MY&digits=+6", .invalidParameter("digits", "+6")),
      ("otpauth://totp/a?secret=MY&digits=none", .invalidParameter("digits", "none")),
      ("otpauth://totp/a?secret=MZX", .invalidSecret(.length(3))),
      ("otpauth://totp/a?secret=MY&period=0", .invalidParameter("period", "0")),
      ("otpauth://totp/a?secret=MY&period=99999999999999999999", .invalidParameter("period", "99999999999999999999")),
      ("otpauth://totp/a?secret=MY&algorithm=md5", .invalidParameter("algorithm", "md5")),
      ("otpauth://hotp/a?secret=MY&counter=-1", .invalidParameter("counter", "-1")),
      ("otpauth://hotp/a?secret=MY&counter=x", .invalidParameter("counter", "x")),
      ("otpauth://totp/a?secret=MY&secret=MZ", .repeatedParameter("secret")),
      ("otpauth://totp/a?secret=MY&digits=6&digits=", .repeatedParameter("digits")),
    ])
  func malformed(_ text: String, _ error: OTPAuthError) {
    #expect(throws: error) { try parseOTPAuthURI(text) }
    #expect(!"\(error)".isEmpty && !"\(error)".contains("secret=MY"))
  }

  /// Two classes of marks in turn, in the order that takes longest to mend.
  private static let heap = String(repeating: "\u{301}", count: 3000) + String(repeating: "\u{323}", count: 3000)

  @Test("names, values and kinds of thousands of combining marks are compared as bytes", .timeLimit(.minutes(1)))
  func marks() throws {
    let uri = try parseOTPAuthURI(
      "otpauth://totp/a?\(Self.heap)=1&SECRET=MY&digits=7&Issuer=b&encoder=Steam&algorithm=NULL&period=60")
    #expect(uri.secret == Array("f".utf8) && uri.digits == 7 && uri.issuer == "b" && uri.isSteam)
    #expect(uri.algorithm == .sha1 && uri.kind == .totp(period: 60))
    #expect(uri.otherParameters.count == 1)
    let names = uri.otherParameters.map { Array($0.name.utf8) }
    #expect(names == [Array(Self.heap.utf8)])
    let valued = try parseOTPAuthURI("otpauth://totp/a?secret=MY&digits=5&encoder=\(Self.heap)")
    #expect(!valued.isSteam && valued.account == "a")
    let labelled = try parseOTPAuthURI("otpauth://totp/\(Self.heap)?secret=MY&digits=5")
    #expect(!labelled.isSteam && labelled.account.utf8.count == Self.heap.utf8.count)
    // A mark after a name makes another name of it.
    #expect(throws: OTPAuthError.missingSecret) { try parseOTPAuthURI("otpauth://totp/a?secret\u{301}=MY") }
    for text in ["otpauth://\(Self.heap)/a?secret=MY", "otpauth:/\(Self.heap)/a?secret=MY"] {
      #expect(throws: OTPAuthError.self) { try parseOTPAuthURI(text) }
    }
  }

  @Test("T-42 case does not matter where it must not, and an algorithm in small letters is not SHA-1")
  func cases() throws {
    let uri = try parseOTPAuthURI("OTPAUTH://TOTP/a?SECRET=my&Algorithm=sha256&DIGITS=7&Period=60")
    #expect(uri.secret == Array("f".utf8) && uri.algorithm == .sha256 && uri.digits == 7)
    #expect(uri.kind == .totp(period: 60))
    for name in ["sha512", "SHA-512", "HmacSHA512", "hmac-sha512"] {
      #expect(try parseOTPAuthURI("otpauth://totp/a?secret=MY&algorithm=\(name)").algorithm == .sha512)
    }
  }

  @Test(
    "D-059 D-05A T-42 a label is divided before it is decoded, and the issuer of the parameter counts",
    arguments: [
      ("Big%20Corp:alice", "Big Corp", "alice"), ("Big%20Corp%3Aalice", "Big Corp", "alice"),
      ("Big%20Corp%3a%20alice", "Big Corp", "alice"), ("Big%20Corp:%20alice", "Big Corp", "alice"),
      ("A%3AB:alice", "A:B", "alice"), (":alice", "", "alice"), ("alice", "", "alice"), ("", "", ""),
      ("Z%C3%BCrich:j%C3%BCrg", "Zürich", "jürg"), ("a+b:c+d", "a+b", "c+d"), ("a:b:c", "a", "b:c"),
      ("a%2Fb:c/d", "a/b", "c/d"),
    ])
  func labels(_ label: String, _ issuer: String, _ account: String) throws {
    let uri = try parseOTPAuthURI("otpauth://totp/\(label)?secret=MY")
    #expect(uri.issuer == issuer && uri.account == account)
    let other = try parseOTPAuthURI("otpauth://totp/\(label)?secret=MY&issuer=Other%26")
    #expect(other.issuer == "Other&" && other.account == account)
  }

  @Test("A secret may have spaces, dashes and padding, as other apps write it")
  func separators() throws {
    for secret in ["JBSW%20Y3DP%20EHPK%203PXP", "jbsw-y3dp-ehpk-3pxp", "JBSWY3DPEHPK3PXP"] {
      #expect(try parseOTPAuthURI("otpauth://totp/a?secret=\(secret)").secret.count == 10)
    }
    #expect(try parseOTPAuthURI("otpauth://totp/a?secret=MY======").secret == Array("f".utf8))
  }

  @Test(
    "A colon in an account, and marks that combine with delimiters, survive",
    arguments: ["//a:b", ":", "a:\u{610}b", "\u{301}", "=\u{301}&?#", "a\u{20DD}"])
  func delimiters(_ name: String) throws {
    for uri in [
      OTPAuthURI(issuer: "", account: name, secret: [1, 2]), OTPAuthURI(issuer: name, account: name, secret: [1, 2]),
    ] {
      #expect(try OTPAuthURI(uri.text) == uri)
    }
    #expect(try OTPAuthURI("otpauth://totp/A:\u{301}b?\u{301}x=1&secret=GEZDGNBV").issuer == "A")
  }

  @Test("D-053 a URI that was written is read as the same, 10,000 times")
  func roundTrips() throws {
    var generator = SystemRandomNumberGenerator()
    let characters = Array("aZ09 :%&=?#/+@ßü漢🔑-._~\"'<>\\")
    func text(without excluded: String = "") -> String {
      let length = Int.random(in: 0...12, using: &generator)
      let random = String((0..<length).map { _ in characters.randomElement(using: &generator) ?? "a" })
      return random.filter { !excluded.contains($0) }.trimmingCharacters(in: .whitespaces)
    }
    for _ in 0..<10_000 {
      let issuer = text()
      // A label without an issuer has no place for a colon.
      let account = text(without: issuer.isEmpty ? ":" : "")
      let uri = OTPAuthURI(
        issuer: issuer, account: account,
        secret: (0..<Int.random(in: 1...64, using: &generator)).map { _ in UInt8.random(in: .min ... .max) },
        kind: Bool.random(using: &generator)
          ? .totp(period: Int.random(in: 1...300, using: &generator))
          : .hotp(counter: UInt64.random(in: .min ... .max, using: &generator)),
        algorithm: TOTPAlgorithm.allCases.randomElement(using: &generator) ?? .sha1,
        digits: Int.random(in: 6...8, using: &generator), isSteam: Bool.random(using: &generator))
      #expect(try OTPAuthURI(uri.text) == uri, "\(uri.text)")
    }
  }

  @Test func `a parameter may be repeated with the same value, and not with another`() throws {
    let uri = try OTPAuthURI("otpauth://totp/Steam:me?issuer=Steam&secret=MFRGGZDF&issuer=Steam")
    #expect(uri.issuer == "Steam" && uri.otherParameters.isEmpty)
    #expect(uri == (try OTPAuthURI("otpauth://totp/Steam:me?issuer=Steam&secret=MFRGGZDF")))
    #expect(throws: OTPAuthError.repeatedParameter("issuer")) {
      try OTPAuthURI("otpauth://totp/Steam:me?issuer=Steam&secret=MFRGGZDF&issuer=steam")
    }
  }

  @Test(
    "What is not given has its usual value", arguments: ["", "null", "NULL"])
  func notGiven(_ value: String) throws {
    let query = "secret=MY&digits=\(value)&period=\(value)&algorithm=\(value)&counter=\(value)"
    let time = try OTPAuthURI("otpauth://totp/a?" + query)
    #expect(time.kind == .totp(period: 30) && time.digits == 6 && time.algorithm == .sha1)
    let counter = try OTPAuthURI("otpauth://hotp/a?" + query)
    #expect(counter.kind == .hotp(counter: 0) && counter.digits == 6)
    #expect(try OTPAuthURI("otpauth://hotp/a?secret=MY").kind == .hotp(counter: 0))
  }

  @Test(
    "Issuers of forms, with colons, addresses and signs have the names that their services gave them",
    arguments: [
      ("My%20Code?issuer=My+Code", "My Code", "My Code"), ("My+Code?issuer=My+Code", "My Code", "My Code"),
      ("My+Code%3Ajohn+doe?issuer=My+Code", "My Code", "john doe"),
      ("My+Code:ada+x@example.com?issuer=My+Code", "My+Code", "ada+x@example.com"),
      ("My%20Code:ada+x@example.com?issuer=My+Code", "My Code", "ada+x@example.com"),
      (
        "Nyaa%20(https://old.example.org):user?issuer=Nyaa+%28https%3A%2F%2Fold.example.org%29",
        "Nyaa (https://old.example.org)", "user"
      ),
      ("A.org:%20Free%20code:no@example.com?issuer=A.org%3A+Free+code", "A.org: Free code", "no@example.com"),
      ("A.org%3A%20Free%3Ano?issuer=A.org%3A%20Free", "A.org: Free", "no"),
      ("https://old.example.org:user?x=1", "https://old.example.org", "user"),
      ("https://old.example.org?issuer=Old", "Old", "https://old.example.org"),
      ("a?issuer=Disney+", "Disney+", "a"), ("a?issuer=C++", "C++", "a"), ("a?issuer=A%2BB+C", "A+B C", "a"),
      ("a?issuer=A+B%20C", "A+B C", "a"), ("A+B:j@example.com?issuer=A+B", "A+B", "j@example.com"),
      ("100%25:a%b?issuer=100%", "100%", "a%b"), ("J%FCrg%zz:a?x=%ff", "J%FCrg%zz", "a"),
    ])
  func names(_ link: String, _ issuer: String, _ account: String) throws {
    let uri = try OTPAuthURI("otpauth://totp/\(link)&secret=MY")
    #expect(uri.issuer == issuer && uri.account == account, "\(uri)")
    #expect(try OTPAuthURI(uri.text) == uri)
  }

  @Test(
    "Steam's codes are known by the host, the encoder, or five digits with the name",
    arguments: [
      ("steam/Steam:me?issuer=Steam", true, "Steam", "me"), ("steam/me?digits=5&period=30", true, "", "me"),
      ("totp/Steam:me?encoder=steam", true, "Steam", "me"), ("totp/ctl:me?issuer=Steam&digits=5", true, "Steam", "me"),
      ("totp/Steam?digits=5", true, "Steam", ""), ("totp/sophia%3ASteam?digits=5", true, "Steam", "sophia"),
      ("totp/Steam:me?issuer=Steam", false, "Steam", "me"), ("totp/Other:me?digits=5", false, "Other", "me"),
      ("totp/Steam:me?issuer=Valve&digits=5", false, "Valve", "me"),
      ("hotp/Steam:me?issuer=Steam&digits=5", false, "Steam", "me"),
    ])
  func steam(_ link: String, _ isSteam: Bool, _ issuer: String, _ account: String) throws {
    let uri = try OTPAuthURI("otpauth://\(link)&secret=MY")
    #expect(uri.isSteam == isSteam && uri.issuer == issuer && uri.account == account, "\(uri)")
    #expect(try OTPAuthURI(uri.text) == uri)
  }

  @Test("Parameters that are not known are written again")
  func unknown() throws {
    let uri = try parseOTPAuthURI("otpauth://totp/a?secret=MY&image=https%3A%2F%2Fx%2Fy.png&lock=true")
    #expect(uri.otherParameters.map(\.name) == ["image", "lock"])
    #expect(uri.text == "otpauth://totp/a?secret=MY&image=https%3A%2F%2Fx%2Fy.png&lock=true")
    #expect(try OTPAuthURI(uri.text) == uri)
  }
}
