/** The links of webhooks: what is sent, what is stored, and who decides with one. */
import { expect, test } from 'vitest'
import { drain, openProposalRig, type ProposalRig } from '../../../support/proposal-rig.ts'
import { readRows, runSql } from '../../../support/stored.ts'
import type { WebhookEndpointTable } from '../../../../schema/tables/changes.ts'

const publicUrl = 'https://gate.example/tollgate'

interface Endpoint {
  readonly id: number
  readonly approval_links: boolean
}

const body = { url: 'https://chat.example/hook', events: ['proposal.created', 'proposal.decided'] }

const endpointOf = async (rig: ProposalRig, token: string, more: object): Promise<Endpoint> => {
  const answer = await rig.request('/api/v1/webhooks', { token, body: { ...body, ...more } })
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.data<Endpoint>()
}

/** The body as the endpoint is sent it. */
async function sent(rig: ProposalRig, id: number): Promise<string> {
  const [endpoint] = await readRows(rig.store, `SELECT * FROM webhook_endpoint WHERE id = ${id}`)
  const [event] = await readRows(
    rig.store,
    "SELECT body FROM webhook_event WHERE type = 'proposal.created' ORDER BY id DESC",
  )
  const row = { id, approver_id: endpoint?.['approver_id'] ?? null } as Pick<
    WebhookEndpointTable,
    'approver_id'
  > & { readonly id: number }
  return rig.access.links.complete(row, String(event?.['body']))
}

const linkIn = (text: string): string | undefined =>
  (JSON.parse(text) as { data: { approve_url?: string } }).data.approve_url

async function linked(token: 'admin' | 'operator' | 'acme' = 'acme') {
  const rig = await openProposalRig({ publicUrl })
  const endpoint = await endpointOf(rig, rig.people.acme, { approval_links: true })
  if (token !== 'acme') {
    const user = { admin: 'ada', operator: 'olga' }[token]
    const set = `UPDATE webhook_endpoint SET tenant_id = NULL, approver_id = (SELECT id FROM "user" WHERE username = '${user}')`
    await runSql(rig.store, set)
  }
  const proposal = await rig.proposed()
  const url = linkIn(await sent(rig, endpoint.id))
  if (url === undefined) throw new Error('there is no link')
  return { rig, endpoint, proposal, url, path: url.slice(publicUrl.length) }
}

const form = { 'content-type': 'application/x-www-form-urlencoded' }
const post = (rig: ProposalRig, path: string, decision = 'approve', revision = 1) =>
  rig.request(path, { headers: form, body: `revision=${revision}&decision=${decision}` })

test('the link opens a page, and its button makes the change, once, with the rights of its user', async () => {
  const { rig, proposal, url, path } = await linked()
  expect(url).toMatch(/^https:\/\/gate\.example\/tollgate\/decide\?link=[\w.-]+$/)
  for (const method of ['GET', 'HEAD', 'GET']) {
    const page = await rig.request(path, { method })
    expect(page.status).toBe(200)
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    expect(page.headers.get('cache-control')).toBe('no-store')
    if (method === 'GET') expect(page.text).toContain('name="revision" value="1"')
  }
  expect(await rig.proposal(proposal.proposal_id)).toMatchObject({ state: 'open' })
  expect(rig.stateOfNode()).toBe('active')

  const done = await post(rig, path)
  expect([done.status, done.text]).toEqual([200, expect.stringContaining('Approved.')])
  expect(rig.stateOfNode()).toBe('inactive')
  expect(await rig.proposal(proposal.proposal_id)).toMatchObject({
    state: 'approved',
    decided_by: 'user:acme/anna',
    decided_via: 'link',
  })
  await rig.tool('set_dispatcher_state', { ...drain, state: 'active' })
  for (const decision of ['approve', 'refuse']) {
    const again = await post(rig, path, decision)
    expect(again.text).toContain('already')
    expect(again.text).not.toContain('<button')
  }
  expect(rig.stateOfNode()).toBe('active')
  const audit = await rig.request('/api/v1/audit?action=POST%20/decide', { token: rig.root })
  expect(audit.data<object[]>().toReversed()).toMatchObject([
    { actor: 'user:acme/anna', action: 'POST /decide approve', outcome: 'success' },
    { action: 'POST /decide approve', code: 'already_decided' },
    { action: 'POST /decide refuse', code: 'already_decided' },
  ])
})

test('no table has the link, nor do deliveries and events show it', async () => {
  const { rig, endpoint, url } = await linked()
  const token = url.slice(url.lastIndexOf('.') + 1)
  const deliveries = await rig.request(`/api/v1/webhooks/${endpoint.id}/deliveries`, {
    token: rig.root,
  })
  expect(deliveries.data<object[]>()).toMatchObject([{ type: 'proposal.created' }])
  const stored = [deliveries.text, JSON.stringify(rig.engine.told), JSON.stringify(rig.logged)]
  for (const table of ['webhook_event', 'webhook_delivery', 'change_proposal', 'audit_entry'])
    stored.push(JSON.stringify(await readRows(rig.store, `SELECT * FROM ${table}`)))
  for (const text of stored) {
    expect(text).not.toContain(token)
    expect(text).not.toContain('approve_url')
  }
})

test('a link that is forged, of another proposal or of another endpoint is no link', async () => {
  const { rig, endpoint, proposal, path } = await linked()
  const other = await endpointOf(rig, rig.people.acme, { url: 'https://b.example/' })
  const silent = await endpointOf(rig, rig.people.acme, { approval_links: true })
  const second = await rig.proposed('set_dispatcher_state', { ...drain, state: 'probing' })
  const [id = '', , signature = ''] = path.slice(path.indexOf('=') + 1).split('.')
  expect(id).toBe(proposal.proposal_id)
  const flipped = `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`
  const links = [
    `${id}.${endpoint.id}.${flipped}`,
    `${id}.${endpoint.id}.${signature.slice(1)}`,
    `${id}.${endpoint.id}.${'A'.repeat(43)}`,
    `${id}.${other.id}.${signature}`,
    `${id}.${silent.id}.${signature}`,
    `${id}.999.${signature}`,
    `${second.proposal_id}.${endpoint.id}.${signature}`,
    `${id}.${endpoint.id}.${signature}.`,
    '',
    '..',
    id,
    `${id}.${endpoint.id}.`,
  ]
  for (const link of links)
    for (const answer of [
      await rig.request(`/decide?link=${link}`),
      await post(rig, `/decide?link=${link}`),
    ])
      expect([link, answer.status]).toEqual([link, 404])
  expect((await rig.request(`${path}&link=x`)).status).toBe(400)
  expect(await rig.proposal(id)).toMatchObject({ state: 'open' })
})

test.each([
  ['its user is deactivated', `UPDATE "user" SET is_active = 0 WHERE username = 'anna'`],
  ['its user is gone', `DELETE FROM "user" WHERE username = 'anna'`],
  ['links are switched off', 'UPDATE webhook_endpoint SET approver_id = NULL'],
  ['the endpoint is inactive', 'UPDATE webhook_endpoint SET is_active = 0'],
  ['the endpoint is removed', 'UPDATE webhook_endpoint SET removed_at = 1'],
])('a link is worth nothing once %s', async (_, change) => {
  const { rig, path, proposal } = await linked()
  await runSql(rig.store, change)
  for (const answer of [await rig.request(path), await post(rig, path)])
    expect(answer.status).toBe(404)
  expect(await rig.proposal(proposal.proposal_id)).toMatchObject({ state: 'open' })
})

test('a link decides nothing that its user may not', async () => {
  const { rig, path } = await linked('operator')
  expect((await post(rig, path)).text).toContain('Approved.')
  await runSql(rig.store, `UPDATE "user" SET role = 'auditor' WHERE username = 'olga'`)
  const endpoint = (await readRows(rig.store, 'SELECT id FROM webhook_endpoint'))[0]
  const proposal = await rig.proposed('set_dispatcher_state', { ...drain, state: 'active' })
  const url = linkIn(await sent(rig, Number(endpoint?.['id']))) ?? ''
  const refused = await post(rig, url.slice(publicUrl.length))
  expect(refused.text).toContain('needs the scope proposals:write')
  expect(await rig.proposal(proposal.proposal_id)).toMatchObject({ state: 'open' })

  await runSql(rig.store, `UPDATE "user" SET role = 'operator' WHERE username = 'olga'`)
  await rig.key({ name: 'dialler', tenant_scope: 'tenant', tenant_slug: 'acme' })
  await rig.proposed('revoke_sbc_api_key', { identifier: 'dialler' })
  const ofKeys = linkIn(await sent(rig, Number(endpoint?.['id']))) ?? ''
  expect((await post(rig, ofKeys.slice(publicUrl.length))).text).toContain('keys:write')
})

test('only a signed-in user has links sent, and another address switches them off', async () => {
  const rig = await openProposalRig({ publicUrl })
  const keys = [rig.root, await rig.key({ scopes: ['webhooks:*', '*:read', 'proposals:write'] })]
  for (const token of keys) {
    const answer = await rig.request('/api/v1/webhooks', {
      token,
      body: { ...body, approval_links: true },
    })
    expect([answer.status, answer.code]).toEqual([403, 'person_required'])
  }
  const plain = await endpointOf(rig, rig.root, {})
  const endpoint = await endpointOf(rig, rig.people.acme, { approval_links: true })
  expect([plain.approval_links, endpoint.approval_links]).toEqual([false, true])
  await rig.proposed()
  expect(linkIn(await sent(rig, plain.id))).toBeUndefined()
  expect(linkIn(await sent(rig, endpoint.id))).toBeDefined()
  const patch = async (token: string, change: object) =>
    (
      await rig.request(`/api/v1/webhooks/${endpoint.id}`, { token, method: 'PATCH', body: change })
    ).data<Endpoint | undefined>()?.approval_links
  expect(await patch(rig.root, { approval_links: true })).toBeUndefined()
  expect(await patch(rig.root, { description: 'chat', url: body.url })).toBe(true)
  expect(await patch(rig.root, { url: 'https://evil.example/' })).toBe(false)
  expect(linkIn(await sent(rig, endpoint.id))).toBeUndefined()
  expect(await patch(rig.people.acme, { approval_links: true })).toBe(true)
})

test('a tenant’s endpoint hears of its own proposals only, and a key hears of none that it may not read', async () => {
  const rig = await openProposalRig({ publicUrl })
  const other = await endpointOf(rig, rig.people.other, { approval_links: true })
  const own = await endpointOf(rig, rig.people.acme, {})
  await rig.proposed()
  const heard = await readRows(rig.store, 'SELECT endpoint_id FROM webhook_delivery')
  expect(heard).toEqual([{ endpoint_id: own.id }])
  expect(other.id).not.toBe(own.id)
  const token = await rig.key({ scopes: ['webhooks:*'] })
  expect((await rig.request('/api/v1/webhooks', { token, body })).status).toBe(403)
})
