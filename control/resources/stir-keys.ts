/** Keys that sign calls: a private key, and the certificate by which others check it (RFC 8226). */
import type { X509Certificate } from 'node:crypto'
import { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'
import type { StirKeysPort } from '../../schema/contracts/stir.ts'
import { problemOfUrl, unusablePort } from '../../schema/net/http-target.ts'
import type { Store } from '../../schema/storage/store.ts'
import { keyProblem } from '../../schema/stir/key-problem.ts'
import { MAX_URL_LENGTH } from '../../schema/stir/identity-header.ts'
import {
  hasPrivateKey,
  MAX_CHAIN_LENGTH,
  readCertificates,
  readPrivateKey,
  subjectOf,
  validityOf,
} from '../../schema/stir/pem.ts'
import { execute, first } from '../../schema/sql/query.ts'
import type { Row } from '../http/field-columns.ts'
import { time } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { pem, time as moment } from '../http/fields.ts'
import { badReference } from './references.ts'
import { type Definition, ResourceStore, type ViewOf, type Writing } from './resource.ts'

const MAX_KEY_LENGTH = 4_000

/** No URL of a PASSporT needs more than these characters (RFC 3986 §2). */
const certificateUrl = z
  .string()
  .max(MAX_URL_LENGTH)
  .regex(
    /^[\x21\x23-\x3b\x3d\x3f-\x5b\x5d-\x7e]+$/,
    'must be a URL, such as https://certificates.example/shaken.pem',
  )

const instant = { body: moment, view: z.iso.datetime(), stored: time }

const fields = field.table(
  {
    id: field.id,
    name: field.required(field.name, { example: 'SHAKEN 2026' }),
    tenant: field.tenant({
      about: 'It signs calls of this tenant. Absent: those of all tenants without a key.',
    }),
    private_key: field.written(
      z
        .string()
        .min(1)
        .max(MAX_KEY_LENGTH)
        .optional()
        .meta({ format: 'password', contentMediaType: 'application/x-pem-file' }),
      {
        isStoredElsewhere: true,
        about:
          'Private key in PEM, of the curve P-256, without a password. It is stored encrypted, ' +
          'and never shown. Absent in an update: the stored one stays.',
      },
    ),
    certificate: field.optional(field.asText(pem(MAX_CHAIN_LENGTH)), {
      about:
        'Certificate in PEM with those between it and the authority, the own one first. Absent: ' +
        'it is fetched from `x5u`.',
      example: null,
    }),
    x5u: field.optional(field.asText(certificateUrl), {
      about:
        'URL at which the certificate is published, by https. Absent: the API publishes it below ' +
        'PUBLIC_URL.',
      example: 'https://certificates.example/shaken.pem',
    }),
    valid_from: field.optional(instant, { about: 'It does not sign before.' }),
    valid_until: field.optional(instant, { about: 'It does not sign after.' }),
    is_active: field.of(field.yesOrNo, { default: true }),
    subject: field.shown(z.string().nullable(), { example: null }),
    expires_at: field.shown(z.iso.datetime().nullable(), { example: null }),
    created_at: field.createdAt,
    updated_at: field.updatedAt,
  },
  { first: ['id', 'name'] },
)

type KeyWriting = Writing<typeof fields.body, typeof fields.view>
type KeyView = ViewOf<typeof fields.view>

const statusView = z
  .strictObject({
    state: z.enum(['in_use', 'usable', 'waiting', 'expired', 'off', 'unusable']),
    why: z.string().nullable(),
    x5u: z.string().nullable().describe('URL of the certificate in signatures.'),
    until: z.iso.datetime().nullable(),
  })
  .describe('What it is good for at this moment, in this process.')

export const liveStirKeyView = fields.view
  .extend({ status: statusView.nullable().describe('Null: it has not been read yet.') })
  .meta({ id: 'StirKey' })

export type LiveStirKey = z.output<typeof liveStirKeyView>

const exampleStatus = {
  state: 'in_use',
  why: null,
  x5u: 'https://certificates.example/shaken.pem',
  until: '2027-01-01T00:00:00.000Z',
}

export const stirKeys: Definition<typeof fields.body, typeof fields.view> = {
  noun: 'STIR key',
  table: 'stir_key',
  path: '/stir/keys',
  scope: 'carriers',
  fields,
  hasOwnRoutes: true,
  found: { title: 'stir_key.name', screen: 'stir-keys' },
  search: ['stir_key.name'],
  order: ['stir_key.name'],
  limits: ['stir_keys'],
  store: (deps) => new StirKeyStore(stirKeys, deps),
  check: refuseUnusable,
  written: putKey,
  follow: ({ engine }) => engine.stir.reload(),
  described: {
    tag: 'Signed calls',
    shown: liveStirKeyView,
    example: { ...fields.example, status: exampleStatus },
    body: {
      name: 'SHAKEN 2026',
      private_key: '-----BEGIN PRIVATE KEY-----\nMIGH…\n-----END PRIVATE KEY-----\n',
      x5u: 'https://certificates.example/shaken.pem',
    },
    patch: { valid_until: '2027-01-01T00:00:00Z' },
  },
}

class StirKeyStore extends ResourceStore<typeof fields.body, typeof fields.view> {
  override async isNewSecret(id: number, { private_key: given }: z.output<typeof fields.body>) {
    return given !== undefined && given !== (await storedKey(this.deps.store, id))
  }

  protected override computed(row: Row): Row {
    const { certificate: pem } = row
    const read = typeof pem === 'string' ? readCertificates(pem) : []
    const [certificate] = typeof read === 'string' ? [] : read
    return {
      subject: certificate === undefined ? null : subjectOf(certificate),
      expires_at: certificate === undefined ? null : timeToText(validityOf(certificate).until),
    }
  }
}

/** It refuses what would sign nothing, as far as that is known without a request. */
async function refuseUnusable({ body, before, deps }: KeyWriting): Promise<Row | undefined> {
  const { valid_from: from, valid_until: until, x5u } = body
  if (from != null && until != null && until <= from)
    throw badReference('valid_until', 'is not after valid_from')
  if (x5u != null) refuseUrl(x5u, deps.allowsPrivateCertificates)
  const text = body.private_key ?? (before && (await storedKey(deps.store, before.id)))
  if (text === undefined) throw badReference('private_key', 'is required')
  const key = readPrivateKey(text)
  if (typeof key === 'string') throw badReference('private_key', key)
  const certificate = certificateIn(body)
  const problem = certificate && keyProblem(key, certificate)
  if (problem !== undefined) throw badReference('certificate', problem)
  // The key is encrypted for its row, which does not exist yet.
  return before === undefined ? { private_key: '' } : undefined
}

function refuseUrl(x5u: string, allowsPrivate: boolean): void {
  const problem = problemOfUrl(x5u, allowsPrivate) ?? unusablePort(x5u)
  if (problem !== undefined) throw badReference('x5u', problem)
  if (!allowsPrivate && !x5u.startsWith('https:')) throw badReference('x5u', 'must be an https URL')
}

function certificateIn({
  certificate,
  x5u,
}: Pick<KeyWriting['body'], 'certificate' | 'x5u'>): X509Certificate | undefined {
  if (certificate == null) {
    if (x5u == null) throw badReference('certificate', 'is required without x5u')
    return undefined
  }
  if (hasPrivateKey(certificate))
    throw badReference('certificate', 'has a private key, which belongs into private_key alone')
  const chain = readCertificates(certificate)
  if (typeof chain === 'string') throw badReference('certificate', chain)
  return chain[0]
}

const placeOf = (row: number) => ({ table: 'stir_key', column: 'private_key', row }) as const

async function putKey(id: number, { body, deps: { store } }: KeyWriting): Promise<void> {
  if (body.private_key === undefined) return
  const sealed = store.secrets.seal(placeOf(id), body.private_key)
  const { db } = store
  await execute(store, db.updateTable('stir_key').set({ private_key: sealed }).where('id', '=', id))
}

/** Undefined: it cannot be read with the key of the secrets. */
async function storedKey(store: Store, id: number): Promise<string | undefined> {
  const query = store.db.selectFrom('stir_key').select('private_key').where('id', '=', id)
  const row = await first(store, query)
  return row && store.secrets.open(placeOf(id), row.private_key)
}

/** The key with its state from the engine. */
export function withState(key: KeyView, engine: Pick<StirKeysPort, 'keyStatus'>): LiveStirKey {
  const status = engine.keyStatus(key.id)
  if (status === undefined) return { ...key, status: null }
  const { until, ...shown } = status
  return { ...key, status: { ...shown, until: until === null ? null : timeToText(until) } }
}
