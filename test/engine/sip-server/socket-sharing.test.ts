import { expect, test } from 'vitest'
import type { Belonging } from '../../../engine/sip-server/core/transactions.ts'
import type { Flow } from '../../../engine/sip-server/flow.ts'
import { type PassedDatagram, SocketSharing } from '../../../engine/sip-server/socket-sharing.ts'

const listener = {
  protocol: 'udp' as const,
  address: '127.0.0.1',
  port: 5060,
  advertisedHost: '127.0.0.1',
  advertisedPort: 5060,
}
const flow: Flow = { listener, address: '192.0.2.1', port: 5070, connectionId: 0 }

const ignore = () => undefined

/** The text of a datagram is what it belongs to, to either process or to `known` by one of them. */
function begin(knows: string) {
  const taken: string[] = []
  const passed: PassedDatagram[] = []
  const sharing = new SocketSharing({
    listeners: () => [listener],
    sockets: () => [],
    belongingOf: (text): Belonging => {
      if (text === 'new') return 'new'
      return text === knows ? 'known' : 'stray'
    },
    busyConnections: () => new Set<number>(),
    take: (bytes, { address, port }) => taken.push(`${bytes.toString()} ${address}:${port}`),
    hold: ignore,
    release: ignore,
    silence: ignore,
    measureQueues: ignore,
  })
  const passes = (text: string): boolean => sharing.passes(Buffer.from(text), flow)
  const pass = (datagram: PassedDatagram) => void passed.push(datagram)
  const receive = (datagrams: readonly PassedDatagram[]) => {
    for (const datagram of datagrams) sharing.receive(datagram)
  }
  return { sharing, taken, passed, passes, pass, receive }
}

const texts = ['old call', 'new call', 'new']

test('alone, everything is handled here', () => {
  expect(texts.map(begin('old call').passes)).toEqual([false, false, false])
})

test('what the old process reads and does not know is handled in the new one', () => {
  const [old, fresh] = [begin('old call'), begin('new call')]
  old.sharing.keepOld(old.pass)
  fresh.sharing.takeNew(fresh.pass)
  expect(texts.map(old.passes)).toEqual([false, true, true])
  fresh.receive(old.passed)
  expect(fresh.taken).toEqual(['new call 192.0.2.1:5070', 'new 192.0.2.1:5070'])
  expect(fresh.passed).toEqual([])
})

test('what the new process does not know goes to the old one, which returns what is no copy', () => {
  const [old, fresh] = [begin('old call'), begin('new call')]
  old.sharing.keepOld(old.pass)
  fresh.sharing.takeNew(fresh.pass)
  expect(texts.map(fresh.passes)).toEqual([true, false, true])
  old.receive(fresh.passed)
  expect(old.taken).toEqual(['old call 192.0.2.1:5070'])
  fresh.receive(old.passed)
  expect(fresh.taken).toEqual(['new 192.0.2.1:5070'])
})

test('when no copies can come any more, the new process handles at once what is new', () => {
  const fresh = begin('new call')
  fresh.sharing.takeNew(fresh.pass)
  fresh.sharing.forgetCopies()
  expect(texts.map(fresh.passes)).toEqual([true, false, false])
  fresh.sharing.alone()
  expect(texts.map(fresh.passes)).toEqual([false, false, false])
})
