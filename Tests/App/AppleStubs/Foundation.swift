// Declarations for type checks, not an implementation. What FoundationEssentials has is the toolchain's own.
@_exported import Darwin
@_exported import Dispatch
@_exported import FoundationEssentials
@_exported public import ObjectiveC

// MARK: Objects

extension NSObject: @retroactive Equatable, @retroactive Hashable {
  public static func == (first: NSObject, second: NSObject) -> Bool { fatalError() }
  public func hash(into hasher: inout Hasher) { fatalError() }
}

@objc public protocol NSObjectProtocol {}
extension NSObject: @retroactive NSObjectProtocol {}

open class NSString: NSObject {}
open class NSData: NSObject {}
open class NSArray: NSObject {}
open class NSDictionary: NSObject {}
open class NSNull: NSObject {}

open class NSError: NSObject, Error, @unchecked Sendable {
  open var domain: String { fatalError() }
  open var code: Int { fatalError() }
  open var userInfo: [String: Any] { fatalError() }
}

public typealias NSErrorPointer = AutoreleasingUnsafeMutablePointer<NSError?>?
public let NSOSStatusErrorDomain = "NSOSStatusErrorDomain"
public let NSUnderlyingErrorKey = "NSUnderlyingError"

extension Error {
  public var localizedDescription: String { fatalError() }
}

public protocol LocalizedError: Error {
  var errorDescription: String? { get }
}

open class NSLock: NSObject, @unchecked Sendable {
  open func lock() { fatalError() }
  open func unlock() { fatalError() }
}

open class Bundle: NSObject, @unchecked Sendable {
  open class var main: Bundle { fatalError() }
  open func url(forResource name: String?, withExtension ext: String?) -> URL? { fatalError() }
}

open class UserDefaults: NSObject, @unchecked Sendable {
  open class var standard: UserDefaults { fatalError() }
  open func data(forKey defaultName: String) -> Data? { fatalError() }
  open func set(_ value: Any?, forKey defaultName: String) { fatalError() }
}

open class JSONSerialization: NSObject {
  public struct ReadingOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
  }
  open class func jsonObject(with data: Data, options opt: ReadingOptions = []) throws -> Any { fatalError() }
}

open class NSUbiquitousKeyValueStore: NSObject {
  public class var didChangeExternallyNotification: Notification.Name { fatalError() }
  open class var `default`: NSUbiquitousKeyValueStore { fatalError() }
  open var dictionaryRepresentation: [String: Any] { fatalError() }
  open func data(forKey aKey: String) -> Data? { fatalError() }
  open func set(_ aData: Data?, forKey aKey: String) { fatalError() }
  open func removeObject(forKey aKey: String) { fatalError() }
  open func synchronize() -> Bool { fatalError() }
}

// MARK: Texts

public struct CharacterSet: Sendable {
  public static var whitespaces: CharacterSet { fatalError() }
}

public func NSLocalizedString(
  _ key: String, tableName: String? = nil, bundle: Bundle = Bundle.main, value: String = "", comment: String
) -> String { fatalError() }

extension StringProtocol {
  public func trimmingCharacters(in set: CharacterSet) -> String { fatalError() }
  public var precomposedStringWithCanonicalMapping: String { fatalError() }
  public var removingPercentEncoding: String? { fatalError() }
}

// MARK: Notifications

public struct Notification {
  public struct Name: Hashable, RawRepresentable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
  }
}

@available(*, unavailable) extension Notification: Sendable {}

open class NotificationCenter: NSObject, @unchecked Sendable {
  public final class Notifications: AsyncSequence, Sendable {
    public struct Iterator: AsyncIteratorProtocol {
      public mutating func next() async -> Notification? { fatalError() }
    }
    public func makeAsyncIterator() -> Iterator { fatalError() }
  }
  open class var `default`: NotificationCenter { fatalError() }
  public func notifications(named name: Notification.Name, object: (any AnyObject & Sendable)? = nil) -> Notifications {
    fatalError()
  }
}

// MARK: Core Foundation

public typealias CFTypeRef = AnyObject
public typealias CFTypeID = UInt
public typealias CFOptionFlags = UInt
public typealias CFString = NSString
public typealias CFData = NSData
public typealias CFArray = NSArray
public typealias CFDictionary = NSDictionary
public typealias CFError = NSError
public final class CFAllocator {}

public func CFGetTypeID(_ cf: CFTypeRef!) -> CFTypeID { fatalError() }

// MARK: Bridging

// The compiler calls these by name.
public func _convertErrorToNSError(_ error: any Error) -> NSError { fatalError() }
public func _convertNSErrorToError(_ error: NSError?) -> any Error { fatalError() }

extension String: @retroactive _ObjectiveCBridgeable {
  public func _bridgeToObjectiveC() -> NSString { fatalError() }
  public static func _forceBridgeFromObjectiveC(_ source: NSString, result: inout String?) { fatalError() }
  public static func _conditionallyBridgeFromObjectiveC(_ source: NSString, result: inout String?) -> Bool {
    fatalError()
  }
  public static func _unconditionallyBridgeFromObjectiveC(_ source: NSString?) -> String { fatalError() }
}

extension Data: @retroactive _ObjectiveCBridgeable {
  public func _bridgeToObjectiveC() -> NSData { fatalError() }
  public static func _forceBridgeFromObjectiveC(_ source: NSData, result: inout Data?) { fatalError() }
  public static func _conditionallyBridgeFromObjectiveC(_ source: NSData, result: inout Data?) -> Bool { fatalError() }
  public static func _unconditionallyBridgeFromObjectiveC(_ source: NSData?) -> Data { fatalError() }
}

extension Array: @retroactive _ObjectiveCBridgeable {
  public func _bridgeToObjectiveC() -> NSArray { fatalError() }
  public static func _forceBridgeFromObjectiveC(_ source: NSArray, result: inout Array?) { fatalError() }
  public static func _conditionallyBridgeFromObjectiveC(_ source: NSArray, result: inout Array?) -> Bool {
    fatalError()
  }
  public static func _unconditionallyBridgeFromObjectiveC(_ source: NSArray?) -> Array { fatalError() }
}

extension Dictionary: @retroactive _ObjectiveCBridgeable {
  public func _bridgeToObjectiveC() -> NSDictionary { fatalError() }
  public static func _forceBridgeFromObjectiveC(_ source: NSDictionary, result: inout Dictionary?) { fatalError() }
  public static func _conditionallyBridgeFromObjectiveC(_ source: NSDictionary, result: inout Dictionary?) -> Bool {
    fatalError()
  }
  public static func _unconditionallyBridgeFromObjectiveC(_ source: NSDictionary?) -> Dictionary { fatalError() }
}

// MARK: URL loading

open class NSURLRequest: NSObject {}

public struct URLRequest: Sendable, Hashable {
  public enum CachePolicy: UInt, Sendable {
    case useProtocolCachePolicy = 0
    case reloadIgnoringLocalCacheData = 1
  }
  public init(url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy, timeoutInterval: Double = 60) {
    fatalError()
  }
  public var url: URL? {
    get { fatalError() }
    set { fatalError() }
  }
  public var httpMethod: String? {
    get { fatalError() }
    set { fatalError() }
  }
  public var httpBody: Data? {
    get { fatalError() }
    set { fatalError() }
  }
  public var cachePolicy: CachePolicy {
    get { fatalError() }
    set { fatalError() }
  }
  public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) { fatalError() }
}

extension URLRequest: _ObjectiveCBridgeable {
  public func _bridgeToObjectiveC() -> NSURLRequest { fatalError() }
  public static func _forceBridgeFromObjectiveC(_ source: NSURLRequest, result: inout URLRequest?) { fatalError() }
  public static func _conditionallyBridgeFromObjectiveC(_ source: NSURLRequest, result: inout URLRequest?) -> Bool {
    fatalError()
  }
  public static func _unconditionallyBridgeFromObjectiveC(_ source: NSURLRequest?) -> URLRequest { fatalError() }
}

open class URLResponse: NSObject, @unchecked Sendable {
  open var url: URL? { fatalError() }
}

open class HTTPURLResponse: URLResponse, @unchecked Sendable {
  open var statusCode: Int { fatalError() }
  open var allHeaderFields: [AnyHashable: Any] { fatalError() }
}

public struct URLError: Error, Sendable {
  public struct Code: RawRepresentable, Hashable, Sendable {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }
    public static var badServerResponse: Code { fatalError() }
    public static var badURL: Code { fatalError() }
    public static var cannotConnectToHost: Code { fatalError() }
    public static var cannotDecodeContentData: Code { fatalError() }
    public static var cannotDecodeRawData: Code { fatalError() }
    public static var cannotFindHost: Code { fatalError() }
    public static var cannotParseResponse: Code { fatalError() }
    public static var clientCertificateRejected: Code { fatalError() }
    public static var clientCertificateRequired: Code { fatalError() }
    public static var dnsLookupFailed: Code { fatalError() }
    public static var notConnectedToInternet: Code { fatalError() }
    public static var secureConnectionFailed: Code { fatalError() }
    public static var serverCertificateHasBadDate: Code { fatalError() }
    public static var serverCertificateHasUnknownRoot: Code { fatalError() }
    public static var serverCertificateNotYetValid: Code { fatalError() }
    public static var serverCertificateUntrusted: Code { fatalError() }
    public static var unsupportedURL: Code { fatalError() }
  }
  public var code: Code { fatalError() }
  public var localizedDescription: String { fatalError() }
}

open class OperationQueue: NSObject, @unchecked Sendable {}

open class URLSessionConfiguration: NSObject, @unchecked Sendable {
  open class var `default`: URLSessionConfiguration { fatalError() }
}

open class URLSession: NSObject, @unchecked Sendable {
  @objc public enum AuthChallengeDisposition: Int, Sendable {
    case useCredential = 0
    case performDefaultHandling = 1
    case cancelAuthenticationChallenge = 2
    case rejectProtectionSpace = 3
  }
  open class var shared: URLSession { fatalError() }
  public init(
    configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue: OperationQueue?
  ) { fatalError() }
  open var delegate: (any URLSessionDelegate)? { fatalError() }
  open func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask { fatalError() }
  public func data(
    for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (Data, URLResponse) { fatalError() }
}

open class URLSessionTask: NSObject, @unchecked Sendable {
  open var delegate: (any URLSessionTaskDelegate)? {
    get { fatalError() }
    set { fatalError() }
  }
  open var response: URLResponse? { fatalError() }
  open func resume() { fatalError() }
  open func cancel() { fatalError() }
}

open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {
  public enum Message: Sendable {
    case data(Data)
    case string(String)
  }
  @objc public enum CloseCode: Int, Sendable {
    case invalid = 0
    case normalClosure = 1000
  }
  open var closeCode: CloseCode { fatalError() }
  open var closeReason: Data? { fatalError() }
  open func cancel(with closeCode: CloseCode, reason: Data?) { fatalError() }
  open func send(_ message: Message) async throws { fatalError() }
  open func receive() async throws -> Message { fatalError() }
}

@objc public protocol URLSessionDelegate: Sendable {
  @objc optional func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)
}

@objc public protocol URLSessionTaskDelegate: URLSessionDelegate {
  @objc optional func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)
  @objc optional func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

@objc public protocol URLSessionWebSocketDelegate: URLSessionTaskDelegate {
  @objc optional func urlSession(
    _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?)
}

// MARK: Credentials

public final class SecIdentity {}

public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"

open class URLProtectionSpace: NSObject, @unchecked Sendable {
  open var authenticationMethod: String { fatalError() }
}

open class URLAuthenticationChallenge: NSObject, @unchecked Sendable {
  open var protectionSpace: URLProtectionSpace { fatalError() }
}

open class URLCredential: NSObject, @unchecked Sendable {
  public enum Persistence: UInt, Sendable {
    case none = 0
    case forSession = 1
  }
  public init(identity: SecIdentity, certificates certArray: [Any]?, persistence: Persistence) { fatalError() }
}
