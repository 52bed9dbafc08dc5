/**
 * Registrations of phones here, and of this platform with carriers. Times are milliseconds by the steady
 * clock inside the engine, and UTC through `EnginePort`.
 */
import type { ProbedStatus } from './dispatcher.ts'

export interface ExtensionStatus {
  readonly status: 'registered' | 'unregistered'
  /** Of the last phone to register. */
  readonly userAgent: string | null
  readonly contacts: readonly {
    readonly uri: string
    readonly userAgent: string
    /** Where its REGISTER came from; an IPv6 address without brackets. */
    readonly source: { readonly protocol: string; readonly address: string; readonly port: number }
    /** The node that has the way to the phone; null: not known. */
    readonly node: string | null
    readonly expiresAt: number
  }[]
}

/** The phones of extensions; a domain is given in any case. */
export interface RegistrationsPort {
  statusOf(domain: string, extension: string): ExtensionStatus
  /**
   * Removes the bindings of an extension at all nodes, or the one with this contact URI. Resolves with false when there
   * is none.
   */
  end(domain: string, extension: string, contact?: string): Promise<boolean>
  /**
   * These extensions were written or deleted, and that is committed: it takes effect before this resolves. Phones that
   * have registered with another password are not reachable any more.
   */
  changed(extensionIds: readonly number[]): Promise<void>
}

/** The registration of this platform with a carrier. */
export interface CarrierRegistrationStatus {
  readonly state: 'registered' | 'unregistered' | 'registering' | 'failed'
  /** Where REGISTER goes: `sip:<host>:<port>;transport=udp`. */
  readonly registrar: string
  /** Null: not registered. */
  readonly expiresAt: number | null
  /** Null: none is due. */
  readonly nextAttemptAt: number | null
  /** Status 0: no answer, `reason` says why. */
  readonly lastAnswer: {
    readonly at: number
    readonly status: number
    readonly reason: string
  } | null
}

export interface TrunksPort {
  /** Undefined: the carrier asks for none, or is not active. */
  registrationOf(carrierId: number): CarrierRegistrationStatus | undefined
  /** Undefined: the gateway takes no calls, so it is not probed. */
  gatewayStatus(gatewayId: number): ProbedStatus | undefined
}
