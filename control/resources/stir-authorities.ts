/** Authorities that may vouch for signers of calls (RFC 8226). The platform trusts them. */
import { z } from 'zod'
import { hasPrivateKey, readCertificates, subjectOf, validityOf } from '../../schema/stir/pem.ts'
import { timeToText } from '../../schema/columns.ts'
import { ApiError } from '../http/api-error.ts'
import type { Row } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { pem } from '../http/fields.ts'
import type { RequestScope } from '../auth/tenants.ts'
import { badReference } from './references.ts'
import { type Definition, ResourceStore } from './resource.ts'

/** About ten certificates. */
const MAX_PEM_LENGTH = 20_000
const MAX_CERTIFICATES = 10

const fields = field.table(
  {
    id: field.id,
    name: field.required(field.name, { example: 'STI-PA' }),
    certificate: field.required(field.asText(pem(MAX_PEM_LENGTH)), {
      about: 'Certificates of the authority in PEM, 10 at most.',
      example: '-----BEGIN CERTIFICATE-----\nMIIB…\n-----END CERTIFICATE-----\n',
    }),
    is_active: field.of(field.yesOrNo, { default: true }),
    subject: field.shown(z.string().nullable(), { example: 'STI-PA root' }),
    expires_at: field.shown(z.iso.datetime().nullable(), { example: '2036-01-01T00:00:00.000Z' }),
    created_at: field.createdAt,
    updated_at: field.updatedAt,
  },
  { schemaId: 'StirAuthority', first: ['id', 'name'] },
)

export const stirAuthorities: Definition<typeof fields.body, typeof fields.view> = {
  noun: 'STIR authority',
  table: 'stir_authority',
  path: '/stir/authorities',
  scope: 'carriers',
  fields,
  found: { title: 'stir_authority.name', screen: 'stir-authorities' },
  search: ['stir_authority.name'],
  order: ['stir_authority.name'],
  store: (deps) => new StirAuthorityStore(stirAuthorities, deps),
  async check({ body }) {
    if (hasPrivateKey(body.certificate)) throw badReference('certificate', 'has a private key')
    const read = readCertificates(body.certificate, MAX_CERTIFICATES)
    if (typeof read === 'string') throw badReference('certificate', read)
    const other = read.find((certificate) => !certificate.ca)
    if (other !== undefined)
      throw badReference(
        'certificate',
        `${subjectOf(other)} is not the certificate of an authority`,
      )
    return undefined
  },
  follow: ({ engine }) => engine.stir.reload(),
  described: {
    tag: 'Signed calls',
    body: { name: 'STI-PA', certificate: fields.example['certificate'] },
    patch: { is_active: false },
  },
}

class StirAuthorityStore extends ResourceStore<typeof fields.body, typeof fields.view> {
  protected override admitWriter(scope: RequestScope): void {
    if (scope.tenantId === null) return
    throw new ApiError(403, 'wrong_tenant', 'Only a global credential may change authorities')
  }

  protected override computed(row: Row): Row {
    const read = readCertificates(String(row['certificate']), MAX_CERTIFICATES)
    if (typeof read === 'string') return { subject: null, expires_at: null }
    const ends = read.map((certificate) => validityOf(certificate).until)
    return {
      subject: read.map(subjectOf).join('; '),
      expires_at: timeToText(Math.min(...ends)),
    }
  }
}
