/** Applications of this process that speak the drachtio protocol. */
import type { Application, ApplicationLink } from '../application.ts'
import { decodeCommand } from '../wire/command.ts'
import { encodeEvent } from '../wire/event.ts'
import type { Clients } from './clients.ts'
import { DeliveryQueue } from './delivery-queue.ts'

/**
 * An application that speaks the drachtio protocol, one payload at a time, without length prefix.
 */
export interface InProcessClient {
  onPayload(payload: string): void
  onClose(): void
}

export interface InProcessLink {
  send(payload: string): void
  close(): void
}

/** @param clients the table that the application is entered into */
export function connectApplication(clients: Clients, application: Application): ApplicationLink {
  const queue = new DeliveryQueue(application, {
    overflowed: () => clients.remove(clientId),
    handled: (transactionId) => clients.handled(clientId, transactionId),
  })
  const clientId = clients.add(queue)
  return {
    send: (command) => clients.receive(clientId, command),
    close: () => {
      queue.discard()
      clients.remove(clientId)
    },
  }
}

export function connectInProcess(clients: Clients, client: InProcessClient): InProcessLink {
  let events = 0
  const link = connectApplication(clients, {
    onEvent: (event) => {
      events += 1
      client.onPayload(encodeEvent(event, events.toString(36)))
    },
    onClose: () => client.onClose(),
  })
  return { send: (payload) => link.send(decodeCommand(payload)), close: () => link.close() }
}
