import ByteCoding
import Foundation
@testable import MFADomain
import OneTimePasswords
import TestSupport
import Testing

@Suite("Files of tokens", .timeLimit(.minutes(2)))
struct TokenFileTests {
  /// The container of RFC 6030, figure 6, whose key is below.
  private static let figure6 = """
    <?xml version="1.0" encoding="UTF-8"?>
    <KeyContainer Version="1.0" xmlns="urn:ietf:params:xml:ns:keyprov:pskc"
        xmlns:ds="http://www.w3.org/2000/09/xmldsig#" xmlns:xenc="http://www.w3.org/2001/04/xmlenc#">
      <EncryptionKey><ds:KeyName>Pre-shared-key</ds:KeyName></EncryptionKey>
      <MACMethod Algorithm="http://www.w3.org/2000/09/xmldsig#hmac-sha1">
        <MACKey>
          <xenc:EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>
          <xenc:CipherData><xenc:CipherValue>
            ESIzRFVmd4iZABEiM0RVZgKn6WjLaTC1sbeBMSvIhRejN9vJa2BOlSaMrR7I5wSX
          </xenc:CipherValue></xenc:CipherData>
        </MACKey>
      </MACMethod>
      <KeyPackage>
        <DeviceInfo><Manufacturer>Manufacturer</Manufacturer><SerialNo>987654321</SerialNo></DeviceInfo>
        <CryptoModuleInfo><Id>CM_ID_001</Id></CryptoModuleInfo>
        <Key Id="12345678" Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp">
          <Issuer>Issuer</Issuer>
          <AlgorithmParameters><ResponseFormat Length="8" Encoding="DECIMAL"/></AlgorithmParameters>
          <Data>
            <Secret>
              <EncryptedValue>
                <xenc:EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>
                <xenc:CipherData><xenc:CipherValue>
                  AAECAwQFBgcICQoLDA0OD+cIHItlB3Wra1DUpxVvOx2lef1VmNPCMl8jwZqIUqGv
                </xenc:CipherValue></xenc:CipherData>
              </EncryptedValue>
              <ValueMAC>Su+NvtQfmvfJzF6bmQiJqoLRExc=</ValueMAC>
            </Secret>
            <Counter><PlainValue>0</PlainValue></Counter>
          </Data>
        </Key>
      </KeyPackage>
    </KeyContainer>
    """
  private static let figure6Key = Hex.decode("12345678901234567890123456789012") ?? []
  private static let secret = Array("12345678901234567890".utf8)

  private func read(_ text: String, key: PSKCFile.Key? = nil) throws -> [ImportedToken] {
    try PSKCFile.read(Array(text.utf8), key: key)
  }

  private func fault(_ text: String, key: PSKCFile.Key? = nil) -> String {
    do throws(ImportError) {
      _ = try PSKCFile.read(Array(text.utf8), key: key)
      return "accepted"
    } catch {
      switch error {
      case .file(let reason): return reason
      case .key(let reason): return "key: \(reason)"
      case .tokens(let reasons, _): return reasons.joined(separator: "; ")
      }
    }
  }

  @Test("the encrypted container of RFC 6030 is opened with its key, and with no other")
  func vector() throws {
    let tokens = try read(Self.figure6, key: .shared(Self.figure6Key))
    let expected = try ImportedToken(
      place: "line 13", serial: "987654321", maker: "Manufacturer", kind: .hotp, secret: Self.secret, digits: 8)
    #expect(tokens == [expected])
    var wrong = Self.figure6Key
    wrong[0] ^= 1
    #expect(fault(Self.figure6, key: .shared(wrong)).hasPrefix("key: "))
    for key in [nil, .passphrase("x"), .shared([1, 2, 3])] as [PSKCFile.Key?] {
      #expect(fault(Self.figure6, key: key).hasPrefix("key: the "))
    }
    // One bit of the ciphertext, of the IV, of the MAC.
    for (old, new) in [("AAECAwQF", "AAECAwQG"), ("IUqGv", "IUqGu"), ("Su+N", "Su+M")] {
      let changed = Self.figure6.replacing(old, with: new)
      #expect(changed != Self.figure6)
      #expect(fault(changed, key: .shared(Self.figure6Key)).contains("the MAC of Secret is wrong"), "\(new)")
    }
    let unsigned = Self.figure6.replacing("<ValueMAC>Su+NvtQfmvfJzF6bmQiJqoLRExc=</ValueMAC>", with: "")
    #expect(fault(unsigned, key: .shared(Self.figure6Key)) == "line 13: Secret is encrypted without a ValueMAC")
  }

  @Test("a plain secret in an encrypted container is refused, with the right key and with another one")
  func plainSecret() throws {
    let start = try #require(Self.figure6.range(of: "<Secret>")?.upperBound)
    let end = try #require(Self.figure6.range(of: "</Secret>")?.lowerBound)
    func container(_ secret: String) -> String {
      Self.figure6.replacingCharacters(in: start..<end, with: secret)
    }
    let encrypted = String(Self.figure6[start..<end])
    let plain = "<PlainValue>MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=</PlainValue>"
    var other = Self.figure6Key
    other[15] ^= 1
    // The container's key for its MACs may be gone, so that no wrong key shows.
    let from = try #require(Self.figure6.range(of: "<MACKey>")?.lowerBound)
    let to = try #require(Self.figure6.range(of: "</MACKey>")?.upperBound)
    let without = container(plain).replacing(String(Self.figure6[from..<to]), with: "")
    let refused = "line 13: Secret is plain in an encrypted container, so the file may have been changed"
    #expect(fault(container(plain), key: .shared(Self.figure6Key)) == refused)
    for key in [Self.figure6Key, other] {
      #expect(fault(without, key: .shared(key)).hasSuffix(": " + refused.dropFirst("line 13: ".count)))
    }
    #expect(
      fault(container(plain + encrypted), key: .shared(Self.figure6Key))
        == "line 13: Secret is there plain and encrypted")
    let counter = Self.figure6.replacing("</Counter>", with: "<ValueMAC>AA==</ValueMAC></Counter>")
    #expect(fault(counter, key: .shared(Self.figure6Key)) == "line 13: Counter is plain, and has a ValueMAC")
    #expect(try read(container(encrypted), key: .shared(Self.figure6Key)).count == 1)
  }

  @Test(
    "containers that python-pskc writes are read: plain, with a shared key, with a passphrase",
    .enabled(
      if: FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/pskc"), "python3-pskc is missing"))
  func peer() async throws {
    let program = """
      import sys
      from pskc import PSKC
      ns = "urn:ietf:params:xml:ns:keyprov:pskc:"
      def write(name, setup):
          p = PSKC()
          setup(p)
          p.add_key(id="1", serial="H1", manufacturer="M\\u00fcller", secret=b"12345678901234567890", counter=7,
                    algorithm=ns + "hotp", response_length=6, response_encoding="DECIMAL")
          p.add_key(id="T2", secret=b"1234567890123456789012345678901x", time_interval=60, time_drift=-4,
                    algorithm=ns + "totp", response_length=8, response_encoding="DECIMAL",
                    algorithm_suite="HMAC-SHA256")
          p.write(sys.argv[1] + "/" + name)
      write("plain", lambda p: None)
      write("shared", lambda p: p.encryption.setup_preshared_key(key=bytes(range(16)), algorithm="aes128-cbc"))
      write("shared256", lambda p: p.encryption.setup_preshared_key(key=bytes(range(32)), algorithm="aes256-cbc"))
      write("pass", lambda p: p.encryption.setup_pbkdf2(password="qw\\u00e9rty", salt=b"12345678", iterations=1000,
                                                        key_length=16))
      """
    try await Places.withTemporaryFolder { folder in
      let run = try await ChildProcess.run("/usr/bin/python3", ["-c", program, folder])
      try #require(run.exit == .code(0), "\(run)")
      let keys: [(String, PSKCFile.Key?)] = [
        ("plain", nil), ("shared", .shared(Array(0..<16))), ("shared256", .shared(Array(0..<32))),
        ("pass", .passphrase("qw\u{E9}rty")),
      ]
      for (name, key) in keys {
        let text = try String(contentsOfFile: folder + "/" + name, encoding: .utf8)
        let tokens = try read(text, key: key)
        try #require(tokens.count == 2, "\(name)")
        #expect(tokens[0].serial.text == "H1" && tokens[0].maker == "Müller" && tokens[0].kind == .hotp, "\(name)")
        #expect(tokens[0].secret == Self.secret && tokens[0].counter == 7 && tokens[0].digits == 6, "\(name)")
        #expect(tokens[1].serial.text == "T2" && tokens[1].kind == .totp && tokens[1].period == 60, "\(name)")
        #expect(tokens[1].drift == -4 && tokens[1].algorithm == .sha256 && tokens[1].digits == 8, "\(name)")
      }
    }
  }

  /// A container of one plain key, with parts replaced.
  private static func plain(_ changes: (String, String)...) -> String {
    changes.reduce(
      """
      <KeyContainer Version="1.0" xmlns="urn:ietf:params:xml:ns:keyprov:pskc"><KeyPackage>
      <DeviceInfo><SerialNo>1</SerialNo></DeviceInfo>
      <Key Id="k" Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp">
      <AlgorithmParameters><ResponseFormat Length="6" Encoding="DECIMAL"/></AlgorithmParameters>
      <Data><Secret><PlainValue>MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=</PlainValue></Secret></Data></Key>
      </KeyPackage></KeyContainer>
      """
    ) { $0.replacing($1.0, with: $1.1) }
  }

  @Test("base64 may be in lines, as encoders of XML and MIME write it, and in tables with the alphabet for URLs")
  func base64Forms() throws {
    let lines = "\r\n  MTIzNDU2Nzg5MDEy\r\n\tMzQ1Njc4OTA=\r\n"
    #expect(try read(Self.plain(("MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=", lines))).first?.secret == Self.secret)
    let mac = Self.figure6.replacing("Su+NvtQfmvfJ", with: "Su+NvtQfmvfJ\n  ")
    #expect(try read(mac, key: .shared(Self.figure6Key)).first?.secret == Self.secret)
    for text in ["/////////////w==", "\"////////\r\n/////w==\"", "_____________w", "/////////////w"] {
      let tokens = try SecretTable.read(csv: Array("secret,serial\n\(text),S1\n".utf8), encoding: .base64)
      #expect(tokens.first?.secret == [UInt8](repeating: 0xFF, count: 10), "\(text.debugDescription)")
    }
    #expect(throws: ImportError.self) {
      try SecretTable.read(csv: Array("secret,serial\n____________/w,S1\n".utf8), encoding: .base64)
    }
  }

  @Test("documents that could reach other files, grow, or mean two things are refused with their line")
  func strict() throws {
    #expect(try read(Self.plain()).first?.secret == Self.secret)
    let bomb = "<!DOCTYPE a [<!ENTITY b \"bbbb\"><!ENTITY c SYSTEM \"file:///etc/passwd\">]>"
    #expect(
      fault(bomb + Self.plain(("<SerialNo>1", "<SerialNo>&c;"))) == "line 1: a document type declaration is refused")
    #expect(fault(Self.plain(("1</S", "&c;</S"))) == "line 2: not well-formed XML: undefined entity")
    #expect(fault(Self.plain(("</KeyContainer>", ""))).hasPrefix("line 6: not well-formed XML: "))
    #expect(fault("").hasPrefix("line 1: not well-formed XML: "))
    #expect(fault(Self.plain(("keyprov:pskc\"><", "other\"><"))) == "line 1: no KeyContainer of PSKC (RFC 6030)")
    let deep = String(repeating: "<a>", count: 100) + String(repeating: "</a>", count: 100)
    #expect(fault(Self.plain(("<Data>", "\(deep)<Data>"))).contains("within each other more than 32 times"))
    let long = String(repeating: "1", count: 1 << 17)
    #expect(fault(Self.plain(("<SerialNo>1", "<SerialNo>\(long)"))).contains("longer than 65536 bytes"))
    #expect(fault(String(repeating: " ", count: 16 << 20) + " ").contains("larger than 16777216 bytes"))
    // Every prefix ends in a fault, and in no trap.
    let bytes = Array(Self.figure6.utf8)
    for end in stride(from: 0, to: bytes.count - 1, by: 37) {
      #expect(throws: ImportError.self) { try PSKCFile.read(Array(bytes[..<end]), key: .shared(Self.figure6Key)) }
    }
  }

  @Test("names and namespaces are bounded before a copy is made, in an element and in its attributes")
  func longNames() {
    let long = "urn:" + String(repeating: "a", count: 100_000)
    let many = String(repeating: "<p:a/>", count: 8000)
    #expect(
      fault("<p:KeyContainer xmlns:p=\"\(long)\">\(many)</p:KeyContainer>")
        == "line 1: a namespace is longer than 1024 bytes")
    let attributes = (1...8000).map { " p:a\($0)=\"\"" }.joined()
    #expect(
      fault("<a\(attributes) xmlns:p=\"\(long)\"/>") == "line 1: an element has more than 32 attributes")
    let prefixes = { (first: Int) in (first..<first + 30).map { " xmlns:p\($0)=\"urn:b\"" }.joined() }
    #expect(
      fault("<a\(prefixes(0))><a\(prefixes(30))><a\(prefixes(60))/></a></a>")
        == "line 1: more than 64 namespaces have a prefix at once")
    let name = String(repeating: "n", count: 1025)
    for text in ["<\(name)/>", "<a \(name)=\"\"/>", "<a xmlns:\(name)=\"urn:b\"/>"] {
      #expect(fault(text) == "line 1: a name is longer than 1024 bytes")
    }
  }

  @Test("namespaces have effect within their element, and the faults of a prefix are named")
  func namespaces() throws {
    let pskc = "urn:ietf:params:xml:ns:keyprov:pskc"
    let document = """
      <p:a b='1' p:c='2' xmlns:p='\(pskc)' xmlns='urn:d'><b xmlns=''><p:c xmlns:p='urn:e'/></b><p:f/><g/></p:a>
      """
    let root = try XMLReader.read(Array(document.utf8))
    #expect(root.name == "a" && root.namespace == pskc && root.attributes == ["b": "1"])
    #expect(root.children.map(\.namespace) == ["", pskc, "urn:d"] && root["b"]?["c"]?.namespace == "urn:e")
    let prefixed = Self.plain(("<Key", "<p:Key"), ("</Key", "</p:Key"), ("xmlns=", "xmlns:p="))
    #expect(try read(prefixed).count == 1)
    let faults = [
      ("<p:a/>", "the prefix p is not declared"), ("<a p:b=''/>", "the prefix p is not declared"),
      ("<a><b xmlns:p='urn:c'/><p:b/></a>", "the prefix p is not declared"),
      ("<a xmlns:p=''/>", "the namespace of a prefix is empty"),
      ("<a xmlns:xml='urn:b'/>", "the prefix xml is reserved"),
      ("<a:b:c/>", "a name has a colon in the wrong place"),
      ("<a:/>", "a name has a colon in the wrong place"),
    ]
    for (text, reason) in faults { #expect(fault(text) == "line 1: \(reason)", "\(text)") }
  }

  @Test(
    "a key that is no one-time password, or is out of bounds, is named with its line",
    arguments: [
      ("pskc:hotp", "pskc:pin", "only the algorithms hotp and totp are read"),
      ("Encoding=\"DECIMAL\"", "Encoding=\"ALPHANUMERIC\"", "only the response encoding DECIMAL is read"),
      ("Length=\"6\"", "Length=\"6\" CheckDigits=\"true\"", "check digits are not supported"),
      ("Length=\"6\"", "Length=\"10\"", "digits is 6, 7 or 8"),
      ("Length=\"6\"", "Length=\"9999999999999999999999\"", "Length is not a number"),
      ("MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=", "MTIz", "secret has 10 to 128 bytes, not 3"),
      ("MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=", "MTIz!", "Secret is not base64"),
      ("<SerialNo>1<", "<SerialNo>a b<", "serial has 1 to 64 printable ASCII characters and no spaces"),
      ("</Secret>", "</Secret><Counter><PlainValue>-1</PlainValue></Counter>", "counter is 0 to 2"),
      ("<Data>", "<Policy><KeyUsage>CR</KeyUsage></Policy><Data>", "the policy of the key excludes OTP"),
      ("<Data>", "<Policy><PINPolicy PINUsageMode=\"Append\"/></Policy><Data>", "codes with a PIN in them"),
      ("<PlainValue>", "<EncryptedValue/><x>", "not well-formed"),
    ])
  func faults(_ old: String, _ new: String, _ reason: String) {
    let text = fault(Self.plain((old, new)))
    #expect(text.hasPrefix("line ") && text.contains(reason), "\(text)")
  }

  @Test("texts of many combining marks are refused, and faults show only their beginnings")
  func combiningMarks() throws {
    let marks = String(repeating: "\u{301}\u{316}", count: 15_000)
    let few = String(repeating: "\u{301}\u{316}", count: 200)
    let key = "<AlgorithmParameters>"
    let documents = [
      Self.plain(("pskc:hotp\"", "pskc:\(few)\"")), Self.plain((key, "\(key)<Suite>\(marks)</Suite>")),
      Self.plain(("<SerialNo>1", "<SerialNo>\(marks)")),
      Self.plain(("<Data>", "<Policy><KeyUsage>\(marks)</KeyUsage></Policy><Data>")),
      Self.plain(("<Data>", "<Data><Counter><PlainValue>\(marks)</PlainValue></Counter>")),
      Self.plain(("Encoding=\"DECIMAL\"", "Encoding=\"\(marks)\"")),
    ]
    for document in documents {
      let text = fault(document)
      #expect(text.hasPrefix("line ") && text.utf8.count < 300, "\(text.prefix(100))")
    }
    do throws(ImportError) {
      _ = try SecretTable.read(csv: Array("secret,\(few)\n".utf8), encoding: .base32)
      Issue.record("accepted")
    } catch {
      guard case .file(let text) = error else { throw error }
      // By bytes: the first mark and the space before it are one character.
      #expect(text.utf8.starts(with: "the column ".utf8) && text.utf8.count < 300, "\(text.unicodeScalars.count)")
    }
    #expect(try read(Self.plain(("<SerialNo>1", "<SerialNo>\r\n \t1"))).first?.serial.text == "1")
  }

  @Test("a table has its columns in any order, and the values of other servers")
  func table() throws {
    let csv = """
      \u{FEFF}User,SECRET,serial,type,algorithm,digits,period,counter,manufacturer\r
      ada,gezd gnbv-gy3tqojq,,,,,,,\r
      "bob, jr",GEZDGNBVGY3TQOJQ,S2,HOTP,hmac-sha256,8,,41,"A ""b"" C"\r

      ,GEZDGNBVGY3TQOJQ,S3,totp,SHA512,7,60,,
      """
    let tokens = try SecretTable.read(csv: Array(csv.utf8), encoding: .base32)
    #expect(tokens.map(\.place) == ["line 2", "line 3", "line 5"])
    #expect(tokens.map(\.serial.text) == ["ada", "S2", "S3"])
    #expect(tokens.map(\.username?.text) == ["ada", "bob, jr", nil])
    #expect(tokens.allSatisfy { $0.secret == Array("1234567890".utf8) })
    #expect(tokens.map(\.digits) == [6, 8, 7] && tokens.map(\.period) == [30, 30, 60])
    #expect(tokens.map(\.algorithm) == [.sha1, .sha256, .sha512] && tokens[1].counter == 41)
    #expect(tokens[1].kind == .hotp && tokens[1].maker == "A \"b\" C")
    let json = #"[{"serial": "S1", "secret": "31323334353637383930", "digits": 8, "user": null, "counter": 0}]"#
    let read = try SecretTable.read(json: Array(json.utf8), encoding: .hex)
    #expect(read.first?.digits == 8 && read.first?.secret == Array("1234567890".utf8) && read.first?.username == nil)
  }

  @Test(
    "a table that means nothing, or two things, is refused with its line and without a part of a secret",
    arguments: [
      ("", "the file is empty"), ("secret,serial\n", "the file has no token"),
      ("serial\nS1\n", "the column secret is missing"),
      ("secret\nx\n", "neither the column serial nor the column user"),
      ("secret,serial,secret\n", "a column is there twice"),
      ("secret,serial,digit\n", "the column digit is unknown (did you mean digits)"),
      ("secret,serial\nx\n", "line 2: 1 values instead of 2"),
      ("secret,serial\n\"x,S1\n", "line 2: a quotation mark is not closed"),
      ("secret,serial\nx\"y,S1\n", "line 2: a quotation mark within a value"),
      ("secret,serial\n\"x\"y,S1\n", "line 2: text after a quotation mark"),
      ("secret,serial\nGEZDGNBVGY3TQOJ!,S1\n", "line 2: secret is not base32"),
      ("secret,serial\nGEZDGNBV,S1\n", "line 2: secret has 10 to 128 bytes, not 5"),
      ("secret,serial,type\nGEZDGNBVGY3TQOJQ,S1,steam\n", "line 2: type is not totp or hotp"),
      ("secret,serial,counter\nGEZDGNBVGY3TQOJQ,S1,5\n", "line 2: counter is for hotp only"),
      ("secret,serial,period\nGEZDGNBVGY3TQOJQ,S1,1\n", "line 2: period is 15 to 300 seconds"),
      ("secret,serial,digits\nGEZDGNBVGY3TQOJQ,S1,six\n", "line 2: digits is not a number"),
      ("secret,user\nGEZDGNBVGY3TQOJQ,\n", "line 2: serial and user are empty"),
    ])
  func tableFaults(_ csv: String, _ reason: String) {
    do throws(ImportError) {
      _ = try SecretTable.read(csv: Array(csv.utf8), encoding: .base32)
      Issue.record("accepted")
    } catch {
      let text: String =
        switch error {
        case .file(let reason), .key(let reason): reason
        case .tokens(let reasons, _): reasons.joined(separator: "; ")
        }
      #expect(text.contains(reason) && !text.contains("GEZD"), "\(text)")
    }
  }

  @Test("of many faults twenty are named and all are counted; a JSON table with a name twice is refused")
  func many() {
    let csv = "secret,serial\n" + (1...50).map { "x,S\($0)\n" }.joined()
    do throws(ImportError) {
      _ = try SecretTable.read(csv: Array(csv.utf8), encoding: .base32)
    } catch {
      guard case .tokens(let reasons, 50) = error else {
        Issue.record("\(error)")
        return
      }
      #expect(reasons.count == ImportError.mostNamed)
    }
    for json in [#"[{"secret": "a", "secret": "b", "serial": "S"}]"#, #"{"secret": "a"}"#, "[1]", "[]"] {
      #expect(throws: ImportError.self) { try SecretTable.read(json: Array(json.utf8), encoding: .base32) }
    }
  }
}
