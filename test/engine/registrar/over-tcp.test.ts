/** A phone that registers by TCP, on real sockets and in real time. */
import { expect, onTestFinished, test } from 'vitest'
import { startCallRig } from '../../support/call-rig.ts'
import { SipPeer } from '../../support/sip-peer.ts'
import { loaded, Phone, readsSeveral, startRegistrar } from './phone.ts'

test('a phone that registered by TCP is called over its connection, and not at all when that is closed', async () => {
  const world = await startRegistrar()
  const registrar = await loaded({
    ...world.deps,
    schedule: (work, delayMs) => {
      const timer = setTimeout(work, delayMs)
      return () => clearTimeout(timer)
    },
  })
  const rig = await startCallRig({ withTcp: true, registrar })
  onTestFinished(async () => {
    await registrar.stop()
    await rig.stop()
  })
  const listener = rig.server.listeners.find(({ protocol }) => protocol === 'tcp')
  if (listener === undefined) throw new Error('no TCP listener')
  const peer = await SipPeer.open(listener)
  rig.peers.push(peer)
  const address = '<sip:101@acme.example>'
  const leg = { ...peer.leg('sip:acme.example'), from: `${address};tag=101`, to: address }
  const knownPhone = `User-Agent: ${readsSeveral}`
  peer.request('REGISTER', leg, { headers: [knownPhone] })
  // One challenge to a line.
  const challenges = (await peer.next('401 REGISTER')).all('WWW-Authenticate')
  expect(challenges).toHaveLength(2)
  const phone = new Phone(world)
  phone.learn({ status: 401, reason: '', headers: { 'WWW-Authenticate': challenges } })
  const authorization = `Authorization: ${phone.credentials()}`
  peer.request('REGISTER', leg, { headers: [authorization, 'Expires: 600', knownPhone] })
  const answer = await peer.next('200 REGISTER')
  expect(answer.get('Contact')).toBe(`<${peer.uri}>;expires=600`)

  const [target] = registrar.contactsOf('acme.example', '101')
  if (target === undefined) throw new Error('not registered')
  expect(target.source).toMatchObject({ protocol: 'tcp', address: '127.0.0.1' })
  const asked = () =>
    new Promise((resolve) => rig.client.sendOptions(target.uri, resolve, target.nextHop))
  // The Contact names a port where the phone listens; a connection to it would be one more.
  const connections = rig.server.stats()['connections']
  void asked()
  peer.reply(await peer.next('OPTIONS'), 200)
  expect(rig.server.stats()['connections']).toBe(connections)
  peer.hangUp()
  await rig.until(() => rig.server.stats()['registrationFlows'] === 0)
  expect(await asked()).toEqual({ reason: 'the connection of the registration is closed' })
  expect(registrar.statusOf('acme.example', '101').status).toBe('unregistered')

  // It comes back as often as it likes, each time by a new connection and under a new address.
  for (let number = 1; number <= 6; number++) {
    const again = { ...peer.leg('sip:acme.example'), from: `${address};tag=${number}`, to: address }
    peer.contact = `sip:u${number}@p${number}.invalid;transport=tcp`
    peer.request('REGISTER', again, { headers: [knownPhone] })
    const asked401 = await peer.next('401 REGISTER')
    phone.learn({
      status: 401,
      reason: '',
      headers: { 'WWW-Authenticate': asked401.all('WWW-Authenticate') },
    })
    peer.request('REGISTER', again, {
      headers: [`Authorization: ${phone.credentials()}`, 'Expires: 600', knownPhone],
    })
    expect((await peer.next('200 REGISTER')).get('Contact')).toBe(`<${peer.contact}>;expires=600`)
    expect(registrar.statusOf('acme.example', '101').contacts).toHaveLength(1)
    peer.hangUp()
    await rig.until(() => registrar.statusOf('acme.example', '101').status === 'unregistered')
  }
})
