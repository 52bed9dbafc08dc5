/** What the server takes from the machine that it runs on. Tests give it a network and a clock of their own. */
import type { SipServerOptions } from './options.ts'
import type { Transport, TransportCallbacks } from './transport/transport.ts'

export interface Machine {
  /** Binds one address, in place of a socket. Default: sockets. */
  readonly bind?: (
    address: SipServerOptions['listen'][number],
    callbacks: TransportCallbacks,
  ) => Promise<Transport>
  /** Runs `work` once after `delayMs`; the returned function cancels it. */
  readonly schedule: (work: () => void, delayMs: number) => () => void
  /** The same again and again; measures how busy the machine is. */
  readonly repeat: (work: () => void, everyMs: number) => () => void
}

export const thisMachine: Machine = {
  schedule: (work, delayMs) => {
    const timer = setTimeout(work, delayMs)
    return () => clearTimeout(timer)
  },
  repeat: (work, everyMs) => {
    const timer = setInterval(work, everyMs).unref()
    return () => clearInterval(timer)
  },
}
