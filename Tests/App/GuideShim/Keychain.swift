internal import Foundation
internal import Locking

/// The part of the Security framework that the guide uses: generic passwords by account, in a file that outlives the
/// process like a keychain.
public enum Keychain {
  private static let path = LockedValue<String?>(nil)

  /// Sets the file. Before that, every call fails with `errSecNotAvailable`.
  public static func open(at file: String) { path.withLock { $0 = file } }

  /// Calls `body` with the passwords by account, and saves its changes.
  fileprivate static func update(_ body: (inout [String: Data]) -> OSStatus) -> OSStatus {
    path.withLock { path in
      guard let path else { return errSecNotAvailable }
      let file = URL(filePath: path)
      let old = (try? JSONDecoder().decode([String: Data].self, from: Data(contentsOf: file))) ?? [:]
      var items = old
      let status = body(&items)
      if items == old { return status }
      do {
        try JSONEncoder().encode(items).write(to: file, options: .atomic)
        return status
      } catch {
        return errSecNotAvailable
      }
    }
  }
}

public typealias OSStatus = Int32
public typealias CFTypeRef = AnyObject
/// A Swift dictionary, which bridges to `CFDictionary` on Apple's systems.
public typealias CFDictionary = [String: Any]

public let errSecSuccess: OSStatus = 0
public let errSecParam: OSStatus = -50
public let errSecNotAvailable: OSStatus = -25291
public let errSecDuplicateItem: OSStatus = -25299
public let errSecItemNotFound: OSStatus = -25300

public let kSecClass = "class"
public let kSecClassGenericPassword = "genp"
public let kSecAttrAccount = "acct"
public let kSecReturnData = "r_Data"
public let kSecValueData = "v_Data"

/// Returns the account of `query`; `nil` if it is not a query for a generic password.
private func account(_ query: CFDictionary) -> String? {
  guard query[kSecClass] as? String == kSecClassGenericPassword else { return nil }
  return query[kSecAttrAccount] as? String
}

@discardableResult
public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
  guard let account = account(query), query[kSecReturnData] as? Bool == true else { return errSecParam }
  return Keychain.update { items in
    guard let data = items[account] else { return errSecItemNotFound }
    result?.pointee = data as AnyObject
    return errSecSuccess
  }
}

@discardableResult
public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
  guard let account = account(attributes), let data = attributes[kSecValueData] as? Data else { return errSecParam }
  return Keychain.update { items in
    guard items[account] == nil else { return errSecDuplicateItem }
    items[account] = data
    return errSecSuccess
  }
}

@discardableResult
public func SecItemDelete(_ query: CFDictionary) -> OSStatus {
  guard let account = account(query) else { return errSecParam }
  return Keychain.update { items in items.removeValue(forKey: account) == nil ? errSecItemNotFound : errSecSuccess }
}
