import type { Flow, Listener } from '../flow.ts'

/** Flows as short texts without line breaks, which cost the garbage collector nothing, and back. */
export class FlowTexts {
  /** All listeners that occurred in a flow: as many as there are sockets. */
  readonly #listeners: Listener[] = []

  write(flow: Flow): string {
    const { listener, address, port, connectionId, returnPort, hostName, connectMs } = flow
    let number = this.#listeners.indexOf(listener)
    if (number === -1) number = this.#listeners.push(listener) - 1
    const text = `${number} ${address} ${port}`
    if (connectionId === 0 && hostName === undefined) return text
    return `${text} ${connectionId} ${returnPort ?? ''} ${hostName ?? ''} ${connectMs ?? ''}`
  }

  /** Reads a text of `write`. */
  read(text: string): Flow {
    const [number, address = '', port, connectionId = 0, returnPort, hostName, connectMs] =
      text.split(' ')
    const listener = this.#listeners[Number(number)]
    if (listener === undefined) throw new Error(`no flow: ${text}`)
    return {
      listener,
      address,
      port: Number(port),
      connectionId: Number(connectionId),
      ...(returnPort && { returnPort: Number(returnPort) }),
      ...(hostName && { hostName }),
      ...(connectMs && { connectMs: Number(connectMs) }),
    }
  }
}
