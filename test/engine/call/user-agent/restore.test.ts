/**
 * Legs that outlive the process: saved as JSON, restored by a user agent on a new server at the
 * same port.
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { LegCommand, LegEventData } from '../../../../engine/call/signalling.ts'
import { LegSignalling, type SavedLeg } from '../../../../engine/call/user-agent/leg-signalling.ts'
import { UserAgent } from '../../../../engine/call/user-agent/user-agent.ts'
import {
  createSipServer,
  type Listener,
  type Machine,
  type StartOptions,
} from '../../../../engine/sip-server/index.ts'
import { ManualTime } from '../../../support/manual-time.ts'
import { sdp, SipPeer } from '../../../support/sip-peer.ts'
import { VirtualWorld } from '../../../support/virtual-world.ts'

const quiet = (): void => undefined

let world: VirtualWorld
let time: ManualTime
let phone: SipPeer
let node: SipPeer
let process: Awaited<ReturnType<typeof start>>

/** The program: it ends without a word when `crash` is called. */
async function start(port = 0, how: StartOptions = {}) {
  let isAlive = true
  const { machine: alive } = world
  const machine: Machine = {
    ...alive,
    bind: async (address, callbacks) => {
      const transport = await alive.bind?.(address, callbacks)
      if (transport === undefined) throw new Error('no transport')
      return { ...transport, send: (...sent) => isAlive && transport.send(...sent) }
    },
    schedule: (work, delayMs) => alive.schedule(() => isAlive && work(), delayMs),
  }
  const listen = [{ protocol: 'udp', host: '127.0.0.1', port }] as const
  const server = createSipServer({ listen, now: time.now }, machine)
  await server.start(how)
  const client = new UserAgent({
    port: server.createPort(),
    log: quiet,
    onMessage: world.moved,
    sessionSeconds: 1_800,
  })
  const events: LegEventData[] = []
  const legs = new LegSignalling(
    client,
    (event) => void events.push(event),
    (act, ms) => time.schedule(act, ms),
  )
  client.handle('INVITE', (_request, answer) => legs.receive('a', answer as never))
  await client.connect()
  const [listener] = server.listeners as readonly [Listener]
  const event = async <T extends LegEventData['type']>(type: T) => {
    const fits = (each: LegEventData) => each.type === type
    expect(await world.until(() => events.some(fits)), `${type} never comes`).toBe(true)
    return events.splice(events.findIndex(fits), 1)[0] as Extract<LegEventData, { type: T }>
  }
  const perform = (command: LegCommand) => legs.perform(command)
  const save = (legId: string) => JSON.parse(JSON.stringify(legs.save(legId) ?? null)) as SavedLeg
  const crash = (): void => void (isAlive = false)
  return { server, client, legs, listener, events, event, perform, save, crash }
}

beforeEach(async () => {
  time = new ManualTime(0)
  world = new VirtualWorld(time)
  process = await start()
  phone = await SipPeer.open(process.listener, {}, world.network)
  node = await SipPeer.open(process.listener, {}, world.network)
})
afterEach(() => process.server.stop())

const uri = (): string => `sip:1555@127.0.0.1:${process.listener.port}`

/** The caller waits for the answer of a call that the node has taken. */
async function ringing() {
  const leg = phone.leg(uri())
  phone.request('INVITE', leg, { body: sdp('offer') })
  await world.settle()
  process.perform({ type: 'respond', legId: 'a', status: 180, headers: {} })
  await phone.next(180)
  const invite = { uri: node.uri, nextHop: undefined, headers: {}, body: sdp('ours') }
  process.legs.invite('b', { ...invite, credentials: undefined }, 'a')
  const received = await node.next('INVITE')
  node.reply(received, 200, { tag: 'node', body: sdp('answer') })
  await process.event('answered')
  await node.next('ACK')
  return leg
}

test('what comes before the restore is done waits for it: a caller may give up meanwhile', async () => {
  const leg = await ringing()
  const legs = { a: process.save('a'), b: process.save('b') }
  process.crash()
  process = await start(process.listener.port, { isHeld: true })
  phone.inbox.length = 0
  phone.request('CANCEL', leg)
  phone.request('INVITE', phone.leg(uri()), { body: sdp('another') })
  await world.settle()
  expect(phone.inbox).toEqual([])
  for (const [legId, each] of Object.entries(legs))
    expect(process.legs.restore(legId, each, undefined)).toBe(true)
  process.server.release()
  expect(await process.event('cancelled')).toMatchObject({ legId: 'a' })
  await phone.next(487)
  time.advance(200)
  await phone.next(100)
})

test('a leg that is not stable is not saved, one that is damaged not restored', async () => {
  const leg = phone.leg(uri())
  phone.request('INVITE', leg, { body: sdp('offer') })
  await world.settle()
  const { legs } = process
  const invite = { uri: node.uri, nextHop: undefined, headers: {}, body: undefined }
  legs.invite('b', { ...invite, credentials: undefined }, 'a')
  const received = await node.next('INVITE')
  expect([legs.save('b'), legs.save('unknown')]).toEqual([undefined, undefined])
  node.reply(received, 200, { tag: 'node', body: sdp('late offer') })
  await process.event('offered')
  expect(legs.save('b')).toBeUndefined()
  for (const damaged of [{}, { dialog: {} }, { invite: { head: 'x' } }] as SavedLeg[])
    expect(legs.restore('c', damaged, undefined)).toBe(false)
})

test('a node that still rings after a crash is cancelled', async () => {
  const invite = { uri: node.uri, nextHop: undefined, headers: {}, body: sdp('ours') }
  process.legs.invite('b', { ...invite, credentials: undefined }, undefined)
  const received = await node.next('INVITE')
  const { port } = process.listener
  process.crash()
  process = await start(port, { endsOrphanedInvitesOf: (source) => source.port === node.port })
  node.reply(received, 180, { tag: 'node' })
  expect((await node.next('CANCEL')).get('Via')).toBe(received.get('Via'))
})
