public import Foundation

extension NetworkError: LocalizedError {
  public var errorDescription: String? { description }
}

extension BackendRefusal: LocalizedError {
  public var errorDescription: String? { message }
}

extension DeviceSecurityError: LocalizedError {
  public var errorDescription: String? { description }
}

extension EnrolmentError: LocalizedError {
  public var errorDescription: String? { description }
}
