/** What one tenant may make of what costs the engine work, and is shared by all. */
import { expect, test } from 'vitest'
import { openResources } from '../../support/resources.ts'

const hosts = (count: number, network: string) =>
  Array.from({ length: count }, (_, n) => ({ host: `10.${network}.${n}` }))

async function opened() {
  const rig = await openResources()
  await rig.tenant('acme')
  await rig.tenant('other')
  return rig
}

test("a tenant's key makes 300 nodes at most, and the platform may give more", async () => {
  const { call, callAs } = await opened()
  const set = (n: number, count: number) => ({
    ...{ endpoint_name: `pbx${n}`, algorithm: 8, nodes: hosts(count, `1.${n}`) },
  })
  for (const n of [1, 2])
    expect((await callAs('acme', 'POST', '/dispatcher', set(n, 100))).status).toBe(201)
  expect((await callAs('acme', 'POST', '/dispatcher', set(3, 99))).status).toBe(201)
  const add = (host: string) => callAs('acme', 'POST', '/dispatcher/3/nodes', { host })
  expect((await add('10.2.0.1')).status).toBe(201)
  const tooMany = await callAs('acme', 'POST', '/dispatcher', set(4, 1))
  expect([tooMany.status, tooMany.code]).toEqual([409, 'too_many_nodes'])
  expect((await callAs('other', 'POST', '/dispatcher', set(5, 1))).status).toBe(201)
  const given = await call('POST', '/dispatcher', { ...set(6, 1), tenant: 'acme' })
  expect(given.status).toBe(201)
  // What is there may be changed, and made less.
  const { id } = given.data<{ id: number }>()
  expect((await callAs('acme', 'PATCH', `/dispatcher/${id}`, { algorithm: 4 })).status).toBe(200)
  const more = { nodes: hosts(2, '1.6') }
  expect((await callAs('acme', 'PATCH', `/dispatcher/${id}`, more)).code).toBe('too_many_nodes')
})

test("a tenant's key makes 100 sets at most, so that the ids last for all", async () => {
  const { callAs } = await opened()
  const set = (n: number) => ({
    ...{ endpoint_name: `pbx${n}`, algorithm: 8, nodes: hosts(1, `3.${n}`) },
  })
  for (let n = 0; n < 100; n += 1)
    expect((await callAs('acme', 'POST', '/dispatcher', set(n))).status).toBe(201)
  expect((await callAs('acme', 'POST', '/dispatcher', set(100))).code).toBe('too_many_sets')
  expect((await callAs('other', 'POST', '/dispatcher', set(101))).status).toBe(201)
})

test("a tenant's key makes 300 gateways at most", async () => {
  const { callAs } = await opened()
  const carrier = (n: number, count: number) => ({
    name: `c${n}`,
    gateways: hosts(count, `4.${n}`),
  })
  for (let n = 0; n < 10; n += 1)
    expect((await callAs('acme', 'POST', '/routing/carriers', carrier(n, 30))).status).toBe(201)
  expect((await callAs('acme', 'POST', '/routing/carriers', carrier(10, 1))).code).toBe(
    'too_many_gateways',
  )
  expect((await callAs('other', 'POST', '/routing/carriers', carrier(11, 1))).status).toBe(201)
})
