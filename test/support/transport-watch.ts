/** The events of a transport, as text, and waiting for them. */
import type { Flow } from '../../engine/sip-server/flow.ts'
import type { TransportCallbacks } from '../../engine/sip-server/transport/transport.ts'
import { Signal } from './waiting.ts'

export interface TransportWatch {
  readonly callbacks: TransportCallbacks
  /**
   * Such as `message <Call-ID> on <connection>`, `failed <reference>: <reason>`, `closed
   * <connection>`.
   */
  readonly events: readonly string[]
  /** Where each message came from. */
  readonly flows: readonly Flow[]
  /** Adds something to the events. */
  readonly saw: (event: string) => void
  readonly seeing: (event: string) => Promise<void>
  readonly seeingSome: (pattern: RegExp) => Promise<void>
}

export function watchTransport(accepts: (source: Flow) => boolean = () => true): TransportWatch {
  const events: string[] = []
  const flows: Flow[] = []
  const changed = new Signal()
  const saw = (event: string): void => {
    events.push(event)
    changed.fire()
  }
  const callbacks: TransportCallbacks = {
    datagram: () => undefined,
    accepts,
    sourceStatus: () => 'proven' as const,
    refused: () => undefined,
    message: (text, flow) => {
      flows.push(flow)
      saw(`message ${/Call-ID: (\S+)/.exec(text)?.[1]} on ${flow.connectionId}`)
    },
    sendFailed: (reference, reason) => saw(`failed ${reference}: ${reason}`),
    connectionClosed: (flow) => saw(`closed ${flow.connectionId}`),
  }
  return {
    callbacks,
    events,
    flows,
    saw,
    seeing: (event) => changed.until(() => events.includes(event)),
    seeingSome: (pattern) => changed.until(() => events.some((event) => pattern.test(event))),
  }
}
