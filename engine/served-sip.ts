import type { SipListener, SipPort } from './sip-server/application.ts'
import type { SipService } from './sip-server/index.ts'

interface Listening {
  readonly server: Pick<SipService, 'listeners'>
  readonly port: Pick<SipPort, 'listeners'>
}

/** SIP as others reach it at this process: not at all before its start and after its stop. */
export class ServedSip {
  #sip: Listening | undefined

  open(sip: Listening): void {
    this.#sip = sip
  }

  close(): void {
    this.#sip = undefined
  }

  get isOpen(): boolean {
    return this.#sip !== undefined
  }

  get listeners(): readonly SipListener[] {
    return this.#sip?.port.listeners ?? []
  }

  /**
   * Where other instances reach SIP of this one: with the address that is shown where all are
   * bound.
   */
  get reachedAt(): readonly SipListener[] {
    const shown = this.#sip?.server.listeners ?? []
    return shown.map(({ protocol, address, port, advertisedHost }) => {
      const isAny = /^[0:.]+$/.test(address)
      return { protocol, host: isAny ? advertisedHost : address, port }
    })
  }
}
