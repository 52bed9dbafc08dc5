import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  openControl,
  type Answer,
  type RequestOptions,
  type TestControl,
} from '../support/control.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { readValue, runSql } from '../support/stored.ts'

const folder = temporaryFolder()
const passwords = [
  'correct horse',
  'battery staple',
  'rainbow table',
  'a wrong guess',
  'of the phone itself',
  'between carriers',
]
test('no token and no password is stored, logged, or answered a second time', async () => {
  const control = await openControl({ path: join(folder, 'secrets.db') })
  const answers: Answer[] = []
  const secrets = new Set(passwords)
  const ask = async (path: string, options: RequestOptions = {}) => {
    const answer = await control.request(`/api/v1${path}`, { token: admin, ...options })
    answers.push(answer)
    return answer
  }
  /** The one answer that may hold a token; the token is a secret from here on. */
  const reveal = async (path: string, options: RequestOptions) => {
    const answer = (await ask(path, options)).data<{ token?: string; secret?: string }>()
    answers.pop()
    const shown = answer.token ?? answer.secret ?? ''
    secrets.add(shown)
    return shown
  }

  const admin = await control.key({ name: 'admin' })
  secrets.add(admin)
  const idempotent = { 'Idempotency-Key': 'known-to-its-caller-only' }
  const token = await reveal('/application-keys', { body: { name: 'ci' }, headers: idempotent })
  await ask('/application-keys', { body: { name: 'ci' }, headers: idempotent })
  const self = await ask('/application-keys/self', { token })
  const { uuid } = self.data<{ uuid: string }>()
  await reveal(`/application-keys/${uuid}/rotate`, { body: { grace_seconds: 60 } })
  await ask(`/application-keys/${uuid}`, { method: 'PATCH', body: { description: 'x' } })
  await ask(`/application-keys/${uuid}`, { method: 'DELETE' })
  await ask('/application-keys')

  const user = { username: 'ada', password: passwords[0], role: 'admin' }
  const { id } = (await ask('/users', { body: user })).data<{ id: number }>()
  const session = await reveal('/auth/login', { body: { username: 'ada', password: passwords[0] } })
  await ask('/auth/me', { token: session })
  await ask('/auth/logout', { token: session, method: 'POST' })
  await ask(`/users/${id}`, { method: 'PATCH', body: { password: passwords[1] } })
  await ask('/auth/login', { body: { username: 'ada', password: passwords[3] } })
  await ask('/auth/login', { body: { username: passwords[3], password: 7 } })
  await ask('/customers', {
    body: { name: 'Acme', email: 'a@acme.example', password: passwords[2] },
  })
  await control.tenant('acme', ['acme.example'])
  const phone = { extension: '100', password: passwords[4], display_name: 'x', tenant: 'acme' }
  await ask('/pbx/extensions', { body: phone })
  const gateways = [{ host: '10.0.0.9' }]
  const auth = { type: 'digest', username: 'us', password: passwords[5] }
  await ask('/routing/carriers', { body: { name: 'transit', gateways, auth } })
  await ask('/routing/carriers')
  const endpoint = { url: 'https://hooks.example/x' }
  await reveal('/webhooks', { body: endpoint })
  await reveal('/webhooks/1/rotate', { body: { overlap_seconds: 60 } })
  await ask('/webhooks')
  await ask('/metrics/telemetry')
  await ask('/audit')
  await control.access.tick()
  await runSql(control.store, 'ALTER TABLE customer RENAME TO gone')
  await ask('/customers')

  expect(answers.map(({ status }) => status)).toEqual([
    201, 200, 200, 200, 200, 201, 200, 200, 200, 401, 400, 201, 201, 201, 200, 200, 200, 200, 500,
  ])
  secrets.add(await jwtSecretOf(control))
  const files = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'latin1'))
  const shown = [...answers.map(({ text }) => text), JSON.stringify(control.logged)]
  for (const hidden of secrets)
    for (const text of [...files, ...shown]) expect(text.includes(partOf(hidden))).toBe(false)
  await control.close()
})

/** The secret that signs sessions: generated at the first start, and never shown. */
async function jwtSecretOf({ store }: TestControl): Promise<string> {
  const place = { table: 'setting', column: 'value', row: 'jwt_secret' }
  const query = "SELECT value FROM setting WHERE name = 'jwt_secret'"
  const stored = await readValue<string>(store, query)
  const secret = store.secrets.open(place, stored ?? '') ?? ''
  expect(secret.length).toBeGreaterThan(40)
  return secret
}

/** The first 12 characters of a token are its public prefix. */
const partOf = (secret: string): string => (secret.length > 40 ? secret.slice(12) : secret)
