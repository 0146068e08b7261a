internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import Foundation
internal import OIDCClient

struct StatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show who is signed in where, and how long the tokens are valid.",
    discussion: """
      Sends nothing. An account whose file cannot be read is shown as `unreadable`, with the file, and the exit code \
      is 65. Example:
        bearer status
      """)

  @OptionGroup var options: BearerOptions

  private struct Row: Encodable {
    /// The name. Left out for a file that cannot be read, unless the configuration has the name.
    let account: String?
    /// Whether commands that name no account of the provider use it; left out if it is the only one.
    let `default`: Bool?
    let state: String
    let provider: String?
    let user: String?
    let expires_at: Int?
    let renewable: Bool?
    let bound_to_key: Bool?
    /// The SHA-256 hash of the certificate that the access token is bound to, in base64url.
    let bound_to_certificate: String?
  }

  func run() throws {
    let settings = try options.settings()
    let store = try options.tokenStore()
    let listing: TokenListing
    do throws(TokenStoreError) { listing = try store.listing() } catch { throw Failure(error) }
    var rows: [Row] = []
    var unnamed = listing.unreadable
    for (name, provider, isDefault) in Self.accounts(settings, stored: listing.names) {
      do throws(TokenStoreError) {
        rows.append(Self.row(name, try store.account(name), provider, isDefault: isDefault))
      } catch {
        guard let index = unnamed.firstIndex(where: { $0.error == error }) else { throw Failure(error) }
        rows.append(Self.row(unnamed.remove(at: index), name, isDefault: isDefault))
      }
    }
    rows += unnamed.map { Self.row($0, nil, isDefault: nil) }
    if options.json { JSONOutput.print(rows) } else { Self.print(rows) }
    guard listing.unreadable.isEmpty else {
      let reasons = listing.unreadable.map { "\($0.error)" }.joined(separator: "; ")
      throw Failure(.badData, "store_unusable: \(reasons)", hint: listing.unreadable.compactMap(\.error.hint).first)
    }
  }

  private static func print(_ rows: [Row]) {
    let width = rows.map { ($0.account ?? "?").count }.max() ?? 0
    for row in rows {
      let name = (row.account ?? "?").padding(toLength: width, withPad: " ", startingAt: 0)
      let mark = row.default == true ? ", the default account" : ""
      let certificate = row.bound_to_certificate.map { ", for the certificate \($0)" } ?? ""
      let user = certificate + mark + (row.user.map { "  \($0)" } ?? "")
      StandardOutput.write(TerminalText.printable("\(name)  \(row.state)\(user)") + "\n")
    }
  }

  /// The accounts in the order of the configuration: of each provider the default one, and the stored ones. Those whose
  /// entry has gone from the configuration are shown too.
  private static func accounts(
    _ settings: BearerSettings, stored: [String]
  ) -> [(name: String, provider: IdentityProvider?, isDefault: Bool?)] {
    var accounts: [(name: String, provider: IdentityProvider?, isDefault: Bool?)] = []
    for provider in settings.providers {
      let standard = Account.storedName(settings.use(of: provider.id).account, at: provider.id)
      let others = stored.filter { $0 != standard && ($0 == provider.id || $0.hasPrefix(provider.id + "/")) }
      accounts.append((standard, provider, others.isEmpty ? nil : true))
      accounts += others.map { ($0, provider, false) }
    }
    return accounts + stored.filter { name in !accounts.contains { $0.name == name } }.map { ($0, nil, nil) }
  }

  private static func row(_ file: TokenListing.Unreadable, _ name: String?, isDefault: Bool?) -> Row {
    Row(
      account: name, default: isDefault, state: "unreadable: \(file.place)", provider: nil, user: nil, expires_at: nil,
      renewable: nil, bound_to_key: nil, bound_to_certificate: nil)
  }

  private static func row(
    _ name: String, _ account: StoredAccount?, _ provider: IdentityProvider?, isDefault: Bool?
  ) -> Row {
    guard let account else {
      return Row(
        account: name, default: isDefault,
        state: provider?.isOfMachine == true ? "a token is asked for when needed" : "signed out",
        provider: nil, user: nil, expires_at: nil, renewable: nil,
        bound_to_key: nil, bound_to_certificate: nil)
    }
    return Row(
      account: name, default: isDefault, state: state(of: account, at: Date()), provider: account.providerID,
      user: account.user?.username, expires_at: account.expiryInSeconds,
      renewable: account.tokens.refreshToken != nil || account.isOfMachine, bound_to_key: account.isBound,
      bound_to_certificate: account.boundCertificate)
  }

  private static func state(of account: StoredAccount, at now: Date) -> String {
    let remaining = Int(account.expiresAt.timeIntervalSince(now))
    switch RefreshDecision(account, at: now) {
    case .use where account.isOpenEnded: return "valid until a service refuses it"
    case .use:
      guard case .refused(_, let afterLostAnswer) = account.refreshState else {
        return "valid for \(duration(remaining))"
      }
      return "valid for \(duration(remaining)), then signed out"
        + (afterLostAnswer ? ": the answer to a refresh was lost" : " by the provider")
    case .refresh: return remaining > 0 ? "valid for \(duration(remaining)), then renewed" : "renewed when needed"
    case .tryOnce: return "uncertain: the answer to a refresh was lost; the next call tries once"
    case .wait(let end): return "waiting \(duration(Int(end.timeIntervalSince(now)))), as the provider asks"
    case .signIn(.noRefreshToken): return "expired"
    case .signIn(.refused): return "signed out by the provider"
    case .signIn(.refusedAfterLostAnswer): return "signed out: the answer to a refresh was lost"
    }
  }

  static func duration(_ seconds: Int) -> String {
    switch seconds {
    case ..<120: "\(max(seconds, 0)) s"
    case ..<7200: "\(seconds / 60) min"
    case ..<172_800: "\(seconds / 3600) h"
    default: "\(seconds / 86_400) d"
    }
  }
}
