import type { OriginateResult } from '../schema/contracts/calls.ts'
import type { Log } from '../schema/contracts/log.ts'
import type { Schedule } from '../schema/clock.ts'
import { type Endpoint, type EndpointListener, startTestPhone } from './endpoint.ts'
import type { SipService } from './sip-server/index.ts'

interface TestPhonesDeps {
  readonly server: Pick<SipService, 'listeners'>
  readonly schedule: Schedule
  readonly log: Log
}

/** The phone of a test call that has ended still answers the BYE. */
const LINGERS_MS = 1_000

/** Phones of this process that take the part of the caller in test calls. */
export class TestPhones {
  readonly #deps: TestPhonesDeps
  /** By the uuid of the call that a phone takes part in. */
  readonly #phones = new Map<string, Endpoint>()

  constructor(deps: TestPhonesDeps) {
    this.#deps = deps
  }

  /** Starts a phone, and lets `place` call from its URI. */
  async place(place: (phoneUri: string) => Promise<OriginateResult>): Promise<OriginateResult> {
    const phone = await startTestPhone(this.#deps.log, this.#near())
    const result = await place(phone.uri)
    if (result.kind === 'originating') this.#phones.set(result.callUuid, phone)
    else await phone.stop()
    return result
  }

  /** The call is over. */
  end(callUuid: string): void {
    const phone = this.#phones.get(callUuid)
    if (phone === undefined) return
    this.#phones.delete(callUuid)
    this.#deps.schedule(() => void phone.stop(), LINGERS_MS)
  }

  async stop(): Promise<void> {
    for (const phone of this.#phones.values()) await phone.stop()
  }

  /** An address of this machine to which our SIP server can send. */
  #near(): EndpointListener {
    const { listeners } = this.#deps.server
    const listener = ['udp', 'tcp'].flatMap((name) =>
      listeners.filter(({ protocol }) => protocol === name),
    )[0]
    const protocol = listener?.protocol === 'tcp' ? 'tcp' : 'udp'
    const { address = '0.0.0.0' } = listener ?? {}
    if (address === '0.0.0.0') return { protocol, host: '127.0.0.1' }
    return { protocol, host: address === '::' ? '::1' : address }
  }
}
