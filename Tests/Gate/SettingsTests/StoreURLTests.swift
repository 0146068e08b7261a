import ConfigurationEngine
import Testing

@testable import Settings

@Suite("Printed URL of a store")
struct StoreURLTests {
  @Test(
    "A printed URL shows no part of a password, also if it is malformed",
    arguments: [
      ("postgres://u:s3cret@h:5432/d", "postgres://u:…@h:5432/d"),
      ("postgres://u:s3@cret@h/d", "postgres://u:…@h/d"),
      ("postgres://u:s3/cret@h/d", "postgres://u:…@h/d"),
      ("postgres://u:s3?cret@h/d", "postgres://u:…@h/d"),
      ("postgres://u:s3#cret@h/d", "postgres://u:…@h/d"),
      ("postgres://u/s3cret@h/d", "postgres://u:…@h/d"),
      ("postgres://u@s3cret@h/d", "postgres://u:…@h/d"),
      ("postgres:/u:s3cret@h/d", "postgres:…@h/d"),
      ("u:s3cret@h/d", "u:…@h/d"),
      ("postgres://u:s3cret/d", "postgres://u:…/d"),
      ("postgres://u:s3cret", "postgres://u:…"),
      ("postgres://[::1]:5432,b:5433/d", "postgres://[::1]:5432,b:5433/d"),
      ("postgres://h/d?password=s3cret&sslmode=require", "postgres://h/d?password=…&sslmode=require"),
      ("postgres://h/d?%70assword=s3cret", "postgres://h/d?…"),
      ("postgres://h/d?oauth_client_secret=s3cret", "postgres://h/d?oauth_client_secret=…"),
      ("postgres://h/d?s3cret", "postgres://h/d?…"),
      ("postgres://h/d?dbname=postgres://u:s3cret", "postgres://h/d?dbname=…"),
      ("host=h password=s3cret dbname=d", "host=…"),
      ("password = 's3cret' host = h", "password=…"),
      // With a mark that combines with the sign before it.
      ("postgres://u:\u{301}s3cret@h/d", "postgres://u:…@h/d"),
      ("postgres://u:s3cret@\u{301}h/d", "postgres://u:…@\u{301}h/d"),
      ("postgres://\u{301}u:s3cret/d", "postgres://\u{301}u:…/d"),
      ("postgres://h/d?\u{301}password=s3cret", "postgres://h/d?…"),
      ("postgres://h/d?sslmode=require&\u{FE0F}password=s3cret", "postgres://h/d?sslmode=require&…"),
      ("postgres://h/d?password=\u{301}s3cret", "postgres://h/d?password=…"),
      ("password=\u{301}s3cret", "password=…"),
    ])
  func masked(_ text: String, _ shown: String) {
    #expect(DatabaseURL.masked(text) == shown)
    #expect(!DatabaseURL.masked(text).replacing("secret=", with: "").contains("cret"))
  }

  @Test(
    "A URL that may carry a key is printed without its query and path, whatever marks these begin with",
    arguments: ["", "\u{301}"])
  func maskedKey(_ mark: String) {
    #expect(MaskedURL.withoutQuery("https://h/p?\(mark)key=1") == "https://h/p?***")
    #expect(MaskedURL.server("https://h/\(mark)key") == "https://h/***")
    #expect(MaskedURL.server("https://h?\(mark)key") == "https://h/***")
  }

  @Test("A keyword string is refused, with the form to write instead")
  func keywordString() {
    #expect(
      throws: GateSettings.Store.Malformed(
        reason: "keyword strings are not supported: write postgres://user@host/database")
    ) { try GateSettings.Store(url: "host=h password=s3cret") }
  }
}
