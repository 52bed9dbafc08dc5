import { expect, test } from 'vitest'
import { documentOf } from '../../support/documented.ts'
import { bodiesOf, fillOwned } from '../../support/owned-world.ts'
import { operations } from '../../support/ownership-rules.ts'
import { openResources } from '../../support/resources.ts'

const spellings = ['tenant', 'tenant_slug']

test('every body that names a tenant takes both spellings, and documents one', async () => {
  const world = await openResources()
  const { document } = documentOf(world.app)
  await fillOwned(world)
  const tried: string[] = []
  for (const { method, path, fields } of bodiesOf(document)) {
    const documented = spellings.filter((spelling) => fields.has(spelling))
    if (method !== 'post' || documented.length === 0) continue
    expect([path, documented.length]).toEqual([path, 1])
    tried.push(path)
    const collection = path.replace('/api/v1', '')
    const { body = {} } = operations[collection] ?? {}
    const scope = collection === '/application-keys' ? { tenant_scope: 'tenant' } : {}
    for (const spelling of spellings) {
      const sent = { ...body, ...scope, ...named(collection, spelling), [spelling]: 'own' }
      const made = await world.call('POST', path, sent)
      expect([path, spelling, made.status, made.text]).toEqual([
        ...[path, spelling, made.status < 300 ? made.status : 201, made.text],
      ])
      const twice = { ...sent, tenant: 'own', tenant_slug: 'own' }
      expect([path, (await world.call('POST', path, twice)).status]).toEqual([path, 400])
    }
  }
  expect(tried.length).toBeGreaterThan(8)
  const listed = await world.call('GET', '/api/v1/application-keys?tenant_slug=own')
  expect(listed.data<unknown[]>().length).toBeGreaterThan(0)
})

/** The unique columns of a row differ between the two. */
function named(collection: string, spelling: string): object {
  const digit = spelling.length % 10
  switch (collection) {
    case '/users':
      return { username: `mine${digit}` }
    case '/dispatcher':
      return { endpoint_name: spelling, nodes: [{ host: `10.3.${digit}.1` }] }
    case '/pbx/extensions':
      return { extension: `80${digit}` }
    case '/telephony/ai-agents':
      return { name: spelling, extension: `90${digit}` }
    case '/numbers':
      return { number: `+155570002${digit}0` }
    case '/rates':
      return { prefix: `4${digit}` }
    case '/routing/carriers':
      return { name: spelling, gateways: [{ host: `10.4.${digit}.1` }] }
    case '/webhooks':
      return { url: `https://${digit}.example/` }
    case '/routing-webhooks':
      return spelling === 'tenant' ? { set: 'own set' } : { set: undefined, carrier: 'own carrier' }
    case '/spend-guards':
      return { customer: undefined, prefix: `4${digit}` }
    default:
      return { name: spelling }
  }
}
