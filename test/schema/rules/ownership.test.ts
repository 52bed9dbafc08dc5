import { expect, test } from 'vitest'
import { brokenClaims } from '../../../schema/rules/ownership.ts'
import { openResources } from '../../support/resources.ts'
import { runSql } from '../../support/stored.ts'

/** Two tenants, and what the platform has written for them before there were rules. */
async function world() {
  const { call, tenant, store } = await openResources()
  const [acme] = [await tenant('acme', ['acme.example']), await tenant('beta', ['beta.example'])]
  const make = async (path: string, body: object) => {
    const answer = await call('POST', path, body)
    expect([path, answer.status, answer.text]).toEqual([path, 201, expect.anything()])
  }
  // As a database from before there were rules.
  let places = 0
  const placeholder = () => `198.18.0.${(places += 1)}`
  const carrier = async (name: string, host: string, { port = 0, netmask = 32 } = {}) => {
    const held = placeholder()
    await make('/routing/carriers', { name, gateways: [{ host: held }] })
    await runSql(
      store,
      'UPDATE carrier_gateway SET host = ?, port = ?, netmask = ? WHERE host = ?',
      host,
      port,
      netmask,
      held,
    )
  }
  const set = async (endpoint_name: string, host: string) => {
    const held = placeholder()
    await make('/dispatcher', { endpoint_name, algorithm: 8, nodes: [{ host: held }] })
    await runSql(store, 'UPDATE dispatcher_node SET host = ? WHERE host = ?', host, held)
  }
  const give = (table: string, name: string) =>
    runSql(store, `UPDATE ${table} SET tenant_id = ? WHERE ${nameOf(table)} = ?`, acme, name)
  return { make, carrier, set, give, store, lines: () => brokenClaims(store) }
}

const nameOf = (table: string): string => (table === 'dispatcher_set' ? 'endpoint_name' : 'name')

test('only a tenant that claims an address of the platform is reported', async () => {
  const { carrier, set, give, lines } = await world()
  await carrier('north', '203.0.113.0', { netmask: 24 })
  await set('pbx', '192.0.2.1')
  await carrier('inside', '203.0.113.7')
  await carrier('around', '203.0.0.0', { netmask: 16 })
  await carrier('node', '192.0.2.1', { port: 5080 })
  await carrier('other port', '192.0.2.1', { port: 5090 })
  await carrier('elsewhere', '198.51.100.1')
  await set('copy', '203.0.113.9')
  for (const name of ['inside', 'around', 'node', 'other port', 'elsewhere'])
    await give('carrier', name)
  expect(await lines()).toHaveLength(3)
  await give('dispatcher_set', 'copy')
  expect((await lines()).map((line) => line.replace(/^(\w+ \S+ of \w+ "[^"]*").*/, '$1'))).toEqual([
    'gateway 203.0.113.7 of carrier "inside"',
    'gateway 203.0.0.0 of carrier "around"',
    'gateway 192.0.2.1 of carrier "node"',
    'node 203.0.113.9 of set "copy"',
  ])
})

test("a tenant's route is named that takes no call of the platform's trunks", async () => {
  const { make, set, give, store, lines } = await world()
  await set('pbx', '192.0.2.1')
  await runSql(store, "INSERT INTO tenant_number VALUES ('1555', 1), ('1800', 2)")
  const routes = {
    own: { prefix: '15550' },
    whole: { prefix: '1' },
    all: {},
    foreign: { prefix: '1800' },
  }
  for (const [name, fields] of Object.entries(routes))
    await make('/inbound-routes', { name, set: 'pbx', ...fields })
  for (const [name, domain] of [
    ['here', 'acme.example'],
    ['there', 'beta.example'],
  ])
    await make('/inbound-routes', { name, set: 'pbx', domain })
  for (const name of [...Object.keys(routes), 'here', 'there']) await give('inbound_route', name)
  expect(await lines()).toEqual([
    expect.stringContaining('"there" takes no call of the platform\'s trunks by beta.example'),
    expect.stringContaining('"foreign" takes no call of the platform\'s trunks: 1800'),
  ])
})
