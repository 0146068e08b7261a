internal import AuthenticatorVault
internal import Foundation

/// The file `export.data` in a 1PUX archive of 1Password. Of each item only the codes are read, never its password.
enum OnePasswordFile {
  private struct Export: Decodable { let accounts: [Account] }

  private struct Account: Decodable { let vaults: [Part] }

  /// A vault of an account.
  private struct Part: Decodable { let items: EntryList<Item>? }

  private struct Item: Decodable {
    let overview: Overview?
    let details: Details?

    private enum Member: CodingKey { case item, overview, details }

    /// Exports of 2021 have an object `item` around each.
    init(from decoder: any Decoder) throws {
      var container = try decoder.container(keyedBy: Member.self)
      if container.contains(.item) { container = try container.nestedContainer(keyedBy: Member.self, forKey: .item) }
      overview = try container.decodeIfPresent(Overview.self, forKey: .overview)
      details = try container.decodeIfPresent(Details.self, forKey: .details)
    }
  }

  private struct Overview: Decodable {
    let title: String?
    let tags: [String]?
  }

  private struct Details: Decodable {
    let loginFields: [LoginField]?
    let sections: [Section]?
  }

  private struct LoginField: Decodable {
    let designation: String?
    let value: String?
  }

  private struct Section: Decodable { let fields: [Lenient<Field>]? }

  /// A field of a section. Those with a code have it in the member `totp` of their value.
  private struct Field: Decodable {
    struct Value: Decodable { let totp: String? }

    let value: Value?
  }

  /// A code of an item.
  private struct Code {
    let text: String
    let title: String?
    let account: String?
    let tags: [String]
  }

  static func read(_ data: Data, at time: Int64, most: Int) throws(VaultFormatError) -> ImportedFile {
    let export = try JSONDecoder.file(Export.self, data, .onePassword, most: most)
    var file = ImportedFile(.onePassword)
    let items = export.accounts.flatMap(\.vaults).flatMap { $0.items?.items ?? [] }
    let codes = items.flatMap { item -> [Result<Code, EntryFault>] in
      switch item.value {
      case .success(let item): self.codes(of: item).map { .success($0) }
      case .failure(let fault): [.failure(fault)]
      }
    }
    guard codes.count <= most else { throw .tooLarge }
    file.add(codes, named: { (try? $0.get()).map { shownName($0.title, $0.account) } ?? "" }) {
      code throws(EntryFault) in
      let code = try code.get()
      var entry = try SecretOrLink.entry(code.text, issuer: code.title, account: code.account, at: time)
      entry.tags = Set(code.tags.filter { !$0.isEmpty }).sorted()
      return entry
    }
    return file
  }

  private static func codes(of item: Item) -> [Code] {
    let account = item.details?.loginFields?.first { $0.designation == "username" }?.value
    let fields = (item.details?.sections ?? []).flatMap { $0.fields ?? [] }
    return fields.compactMap { field in
      guard let text = (try? field.value.get())?.value?.totp, !text.isEmpty else { return nil }
      return Code(text: text, title: item.overview?.title, account: account, tags: item.overview?.tags ?? [])
    }
  }
}
