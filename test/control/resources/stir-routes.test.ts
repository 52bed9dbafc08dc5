import { afterAll, expect, test } from 'vitest'
import type { StirKeysPort, StirKeyStatus } from '../../../schema/contracts/stir.ts'
import { openResources } from '../../support/resources.ts'
import { readRows } from '../../support/stored.ts'
import { authorityPem, rfcCertificate, rfcKey, rfcKeyAsPkcs8 } from '../../support/stir-fixtures.ts'
import { StirPki } from '../../support/stir-pki.ts'

const keysPath = '/api/v1/stir/keys'
const authoritiesPath = '/api/v1/stir/authorities'
const x5u = 'https://certificates.example/shaken.pem'

const pki = new StirPki()
afterAll(() => pki.remove())
const wide = pki.sign('wide', { curve: 'secp384r1' })
const other = pki.sign('other')

/** The engine's part. */
class KeysPort implements StirKeysPort {
  reloads = 0

  async reload(): Promise<void> {
    this.reloads += 1
  }

  keyStatus(id: number): StirKeyStatus | undefined {
    const until = Date.UTC(2_027, 0)
    return id === 1 ? { state: 'in_use', why: null, x5u, until } : undefined
  }

  publishedCertificate(name: string): string | undefined {
    return name === 'a.pem' ? rfcCertificate : undefined
  }
}

async function open() {
  const rig = await openResources()
  const port = new KeysPort()
  Object.assign(rig.engine, { stir: port })
  const make = (body: object) =>
    rig.call('POST', keysPath, { name: 'shaken', private_key: rfcKey, ...body })
  return { ...rig, make, port }
}

test('the private key is stored encrypted, and no answer shows it', async () => {
  const { make, call, store, port } = await open()
  const made = await make({ certificate: rfcCertificate })
  expect([made.status, made.text.includes('PRIVATE')]).toEqual([201, false])
  expect(made.data()).toMatchObject({
    ...{ id: 1, name: 'shaken', tenant: null, subject: 'SHAKEN 1234', x5u: null, is_active: true },
    status: { state: 'in_use', x5u, until: '2027-01-01T00:00:00.000Z' },
  })
  for (const path of [keysPath, `${keysPath}/1`, '/api/v1/changes', '/api/v1/audit'])
    expect((await call('GET', path)).text).not.toContain('PRIVATE KEY')
  const [row] = await readRows<{ private_key: string }>(store, 'SELECT private_key FROM stir_key')
  expect(row?.private_key).toMatch(/^enc1:/)
  const place = { table: 'stir_key', column: 'private_key', row: 1 }
  expect(store.secrets.open(place, row?.private_key ?? '')).toBe(rfcKey)
  expect(port.reloads).toBe(1)
})

test('a private key in the text of a certificate is refused, and nowhere to be read', async () => {
  const { make, call } = await open()
  const file = `${rfcKey}${rfcCertificate}`
  const answers = [
    await make({ certificate: file }),
    await make({ certificate: file.replaceAll('\n', '') }),
    await call('POST', authoritiesPath, { name: 'x', certificate: `${authorityPem}${rfcKey}` }),
  ]
  for (const { status, text } of answers)
    expect([status, text.includes('"path":"certificate"')]).toEqual([400, true])
  for (const path of [keysPath, authoritiesPath, '/api/v1/changes', '/api/v1/audit'])
    answers.push(await call('GET', path))
  for (const { text } of answers) expect(text).not.toContain(rfcKey.split('\n')[1])
})

test('a change keeps the private key, and may replace it', async () => {
  const { make, call, store, port } = await open()
  await make({ certificate: rfcCertificate })
  const changed = await call('PATCH', `${keysPath}/1`, { name: 'old', x5u })
  expect(changed.data()).toMatchObject({ name: 'old', x5u })
  await call('PATCH', `${keysPath}/1`, { private_key: rfcKeyAsPkcs8 })
  const [row] = await readRows<{ private_key: string }>(store, 'SELECT private_key FROM stir_key')
  const place = { table: 'stir_key', column: 'private_key', row: 1 }
  expect(store.secrets.open(place, row?.private_key ?? '')).toBe(rfcKeyAsPkcs8)
  expect(port.reloads).toBe(3)
})

test('a key in one line, as a form of the console sends it, is a key', async () => {
  const { make } = await open()
  const made = await make({ private_key: rfcKey.replaceAll('\n', ''), certificate: rfcCertificate })
  expect([made.status, made.text]).toEqual([201, made.text])
})

test.each([
  ['no key', { private_key: undefined, x5u }, 'private_key'],
  ['text as key', { private_key: 'x', x5u }, 'private_key'],
  ['a key of another curve', { private_key: wide.keyPem, x5u }, 'private_key'],
  ['the certificate of another key', { certificate: other.chain }, 'certificate'],
  ['the certificate of an authority', { certificate: authorityPem }, 'certificate'],
  ['text as certificate', { certificate: 'x' }, 'certificate'],
  ['neither certificate nor x5u', {}, 'certificate'],
  ['x5u by HTTP', { x5u: 'http://certificates.example/a.pem' }, 'x5u'],
  ['x5u inside', { x5u: 'https://10.0.0.1/a.pem' }, 'x5u'],
  ['x5u with a line break', { x5u: 'https://certificates.example/\r\nVia: x' }, 'x5u'],
  ['x5u with a bracket', { x5u: 'https://certificates.example/>' }, 'x5u'],
  ['no time', { x5u, valid_from: '2026-02-01', valid_until: '2026-01-01' }, 'valid_until'],
])('%s is refused', async (_, body, path) => {
  const { make } = await open()
  const refused = await make(body)
  expect([refused.status, refused.text.includes(`"path":"${path}"`)]).toEqual([400, true])
})

test('a change cannot bring a certificate of another key', async () => {
  const { make, call } = await open()
  await make({ x5u })
  const refused = await call('PATCH', `${keysPath}/1`, { certificate: other.chain })
  expect([refused.status, refused.text.includes('is of another key')]).toEqual([400, true])
})

test('a deletion is not undone without the key, and a change is', async () => {
  const { make, call } = await open()
  await make({ x5u })
  await call('PATCH', `${keysPath}/1`, { name: 'renamed' })
  const [change] = (await call('GET', '/api/v1/changes')).data<{ change_id: string }[]>()
  const undone = await call('POST', `/api/v1/changes/${change?.change_id}/undo`, { reason: 'test' })
  expect([undone.status, undone.text]).toEqual([200, undone.text])
  expect((await call('GET', `${keysPath}/1`)).data()).toMatchObject({ name: 'shaken' })
})

test('an authority is made by the platform alone, and shows whom it is', async () => {
  const { call, callAs, tenant, port } = await open()
  await tenant('acme')
  const body = { name: 'root', certificate: authorityPem }
  expect((await callAs('acme', 'POST', authoritiesPath, body)).status).toBe(403)
  const made = await call('POST', authoritiesPath, body)
  expect(made.data()).toMatchObject({ name: 'root', subject: 'ca of tests', is_active: true })
  expect((await callAs('acme', 'GET', authoritiesPath)).data()).toEqual([])
  const refused = await call('POST', authoritiesPath, { name: 'x', certificate: rfcCertificate })
  expect([refused.status, refused.text.includes('is not the certificate of an authority')]).toEqual(
    [400, true],
  )
  expect(port.reloads).toBe(1)
})

test('the certificates of our keys are open to all, by the names of their URLs', async () => {
  const { app } = await open()
  const found = await app.request('/stir/certificates/a.pem')
  expect([found.status, await found.clone().text()]).toEqual([200, rfcCertificate])
  expect(found.headers.get('content-type')).toBe('application/pem-certificate-chain')
  expect((await app.request('/stir/certificates/b.pem')).status).toBe(404)
})
