/**
 * An application in the same process: events and commands are handed over as they are. Towards the
 * application always later, never inside a call that it made: it may register what it waits for
 * after `send`.
 */
import type { Application, ApplicationLink, SavedDialogs } from '../application.ts'
import { decodeCommand } from '../wire/command.ts'
import { encodeEvent } from '../wire/event.ts'
import { DeliveryQueue } from './delivery-queue.ts'
import type { Clients } from './clients.ts'

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
export function connectApplication(
  clients: Clients,
  application: Application,
  more?: {
    readonly savedDialogs: (clientId: number) => SavedDialogs
    readonly ping: NonNullable<ApplicationLink['ping']>
  },
): ApplicationLink {
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
    ...(more && { saved: more.savedDialogs(clientId), ping: more.ping }),
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
