import { expect, test } from 'vitest'
import { leadsBack } from '../../../engine/registrar/registrar.ts'
import { Phone, startRegistrar } from './phone.ts'

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

test('a phone cannot direct its calls to another host; a known proxy can', async () => {
  const world = await startRegistrar()
  const register = async (cseqOf: string) => {
    const phone = new Phone(world, { callId: cseqOf })
    await phone.challenged()
    return phone.send({
      contact: '<sip:+1900@gateway.example>',
      path: '<sip:198.51.100.9;lr>',
      authorization: phone.credentials(),
    })
  }
  expect(await register('one')).toMatchObject({ status: 403, reason: 'Path Not Allowed' })
  expect(world.registrar.contactsOf('acme.example', '101')).toEqual([])
  world.proxies.add('203.0.113.7')
  expect(await register('two')).toMatchObject({ status: 200 })
  expect(world.registrar.contactsOf('acme.example', '101')).toMatchObject([
    { routes: ['<sip:198.51.100.9;lr>'] },
  ])
})

test('a proxy is trusted for phones of the tenants that it serves only', async () => {
  const world = await startRegistrar()
  const register = async (callId: string) => {
    const phone = new Phone(world, { callId })
    await phone.challenged()
    const authorization = phone.credentials()
    const path = '<sip:198.51.100.9;lr>'
    return phone.send({ contact: '<sip:101@phone>', path, authorization })
  }
  world.proxies.add('203.0.113.7 999')
  expect(await register('one')).toMatchObject({ status: 403, reason: 'Path Not Allowed' })
  world.proxies.add('203.0.113.7 1')
  expect(await register('two')).toMatchObject({ status: 200 })
  expect(world.registrar.contactsOf('acme.example', '101')).toHaveLength(1)
})
