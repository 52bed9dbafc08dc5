import { expect, test } from 'vitest'
import { leadsBack } from '../../../engine/registrar/registrar.ts'
import { Phone, startRegistrar, type World } from './phone.ts'

test.each([
  ['<sip:203.0.113.7;lr>', true],
  ['<sip:c12@203.0.113.7:5070;transport=tcp;lr;seal=Ab-1_x>', true],
  ['<SIPS:203.0.113.7;lr>', true],
  ['<sip:203.0.113.70;lr>', false],
  ['<sip:198.51.100.9;lr>', false],
  ['<sip:edge.example;lr>', false],
  ['<sip:203.0.113.7;maddr=198.51.100.9;lr>', false],
  ['<sip:203.0.113.7;MADDR=198.51.100.9>', false],
  ['<sip:a@203.0.113.7;x=@198.51.100.9;lr>', false],
  ['<sip:203.0.113.7@198.51.100.9;lr>', false],
  ['<sip:203.0.113.7;%6daddr=198.51.100.9;lr>', false],
  ['sip:203.0.113.7;lr', false],
  ['', false],
])('a Path of %s leads back to 203.0.113.7: %s', (entry, isBack) => {
  expect(leadsBack([entry], { address: '203.0.113.7' })).toBe(isBack)
})

test('an IPv6 address stands in brackets', () => {
  expect(leadsBack(['<sip:[2001:DB8::7]:5060;lr>'], { address: '2001:db8::7' })).toBe(true)
  expect(leadsBack(['<sip:[2001:db8::8]:5060;lr>'], { address: '2001:db8::7' })).toBe(false)
})

const path = '<sip:198.51.100.9;lr>'

/** A phone, new each time, registers through a proxy. */
async function register(world: World, headers: Readonly<Record<string, string>> = { path }) {
  const phone = new Phone(world)
  await phone.challenged()
  const contact = '<sip:+1900@gateway.example>'
  return phone.send({ contact, authorization: phone.credentials(), ...headers })
}

const refused = { status: 403, reason: 'Path Not Allowed' }
const routesTo101 = ({ registrar }: World) =>
  registrar.contactsOf('acme.example', '101').map(({ routes }) => routes)

test('a phone cannot direct its calls to another host; a proxy can for the tenants that it serves', async () => {
  const world = await startRegistrar()
  expect(await register(world)).toMatchObject(refused)
  world.proxies.add('203.0.113.7 999')
  expect(await register(world)).toMatchObject(refused)
  expect(routesTo101(world)).toEqual([])
  world.proxies.add('203.0.113.7 1')
  expect(await register(world)).toMatchObject({ status: 200 })
  expect(routesTo101(world)).toEqual([[path]])
})

test('a Path is trusted only while its proxy is ours, also after a restart', async () => {
  const world = await startRegistrar()
  world.proxies.add('203.0.113.7')
  await register(world)
  world.proxies.clear()
  for (const each of [world, await startRegistrar({ store: world.store })]) {
    expect(routesTo101(each)).toEqual([])
    expect(each.registrar.statusOf('acme.example', '101').status).toBe('unregistered')
    each.proxies.add('203.0.113.7')
    expect(routesTo101(each)).toEqual([[path]])
    each.proxies.clear()
  }
})

// RFC 3327 §5.3: a phone that does not know of it may stumble over it.
test.each([
  [{}, undefined],
  [{ supported: 'gruu' }, undefined],
  [{ supported: 'outbound, PATH' }, '<sip:203.0.113.7;lr>'],
  [{ require: 'path' }, '<sip:203.0.113.7;lr>'],
])('the answer to a phone that says %j shows the Path %s', async (headers, shown) => {
  const contact = '<sip:101@203.0.113.7:5060>'
  const own = { path: '<sip:203.0.113.7;lr>', contact, ...headers }
  const answer = await register(await startRegistrar(), own)
  expect([answer.status, answer.headers['Path']]).toEqual([200, shown])
})
