import { expect, test } from 'vitest'
import { openResources } from '../../support/resources.ts'

const period = 'start_date=2026-01-01T00:00:00Z&end_date=2026-02-01T00:00:00Z'

/** As stored, and as somebody types it. */
const spellings: readonly [stored: string, typed: string][] = [
  ['Ärmel', 'ärmel'],
  ['Ärmel', 'ÄRM'],
  ['ärmel', 'ÄRMEL'],
  ['STRAẞE', 'straße'],
  ['Łódź', 'łÓDŹ'],
  ['ΟΔΟΣ', 'οδος'],
  ['Москва', 'МОСКВА'],
  ['Նարեկ', 'նարԵԿ'],
  ['ǅungla', 'ǆUNGLA'],
  ['100%_Ö', '%_ö'],
  ['İzmir', 'İZMIR'],
]

test('a search finds letters of every script in either case, and nothing else', async () => {
  const { call } = await openResources()
  const names = new Map<string, string>()
  for (const [index, [stored]] of spellings.entries()) {
    const email = `c${index}@nova.example`
    const made = await call('POST', '/api/v1/customers', { name: `${stored} ${index}`, email })
    expect([made.status, made.text]).toEqual([201, made.text])
    names.set(`${stored} ${index}`, stored)
  }
  for (const [, typed] of spellings) {
    const found = await call('GET', `/api/v1/customers?search=${encodeURIComponent(typed)}`)
    const listed = found.data<{ name: string }[]>().map(({ name }) => name)
    const meant = [...names].filter(([name]) =>
      name
        .normalize()
        .toLowerCase()
        .replaceAll('ς', 'σ')
        .includes(typed.normalize().toLowerCase().replaceAll('ς', 'σ')),
    )
    expect([typed, listed.toSorted()]).toEqual([typed, meant.map(([name]) => name).toSorted()])
    expect(listed.length).toBeGreaterThan(0)
  }
})

test('lists, the audit log and the tools search without regard to case', async () => {
  const { call } = await openResources()
  await call('POST', '/api/v1/tenants', { slug: 'acme', domains: ['acme.example'] })
  const phone = { extension: '101', domain: 'acme.example', password: 'x9Kd72hQw1' }
  await call('POST', '/api/v1/pbx/extensions', { ...phone, display_name: 'Frau Ärmel' })
  await call('POST', '/api/v1/application-keys', { name: 'Ärmel' })
  await call('POST', '/api/v1/routing/carriers', {
    name: 'Ärmel',
    gateways: [{ host: '192.0.2.7' }],
  })
  for (const path of ['pbx/extensions', 'application-keys', 'routing/carriers', 'trunks']) {
    const { body } = await call('GET', `/api/v1/${path}?search=${encodeURIComponent('äRMEL')}`)
    expect([path, JSON.stringify(body)]).toEqual([path, expect.stringContaining('Ärmel')])
  }
  const tool = await call('POST', '/api/v1/mcp/tools/list_sbc_api_keys', { search: 'äRMEL' })
  expect(tool.text).toContain('Ärmel')
  const audited = await call('GET', `/api/v1/audit?${period}&action=post&target=ROUTING`)
  expect(audited.text).toContain('/api/v1/routing/carriers')
})
