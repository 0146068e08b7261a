import AuthenticatorVault
import Foundation
import Testing

@testable import AuthenticatorTool

@Suite struct ListTests {}
