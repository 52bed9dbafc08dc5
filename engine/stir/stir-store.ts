/** Keys and authorities from the database. What cannot be used is left out and reported. */
import { fromFlag } from '../../schema/columns.ts'
import { all } from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'

export interface StirKeyRecord {
  readonly id: number
  /** Its owner; null: the platform. */
  readonly tenantId: number | null
  readonly name: string
  /** PEM. */
  readonly privateKey: string
  /** The chain in PEM; null: it is where `x5u` says. */
  readonly certificate: string | null
  /** Null: the chain is published by the API. */
  readonly x5u: string | null
  /** Milliseconds UTC; null: as the certificate says. */
  readonly validFrom: number | null
  readonly validUntil: number | null
  readonly isActive: boolean
}

export interface StirRecords {
  readonly keys: readonly StirKeyRecord[]
  /** Certificates of authorities in PEM, with a name for people. */
  readonly authorities: readonly { readonly name: string; readonly certificate: string }[]
}

export async function loadStir(
  store: Store,
  onProblem: (problem: string) => void,
): Promise<StirRecords> {
  const { db, secrets } = store
  const rows = await all(store, db.selectFrom('stir_key').selectAll().orderBy('id'))
  const keys = rows.flatMap((row): StirKeyRecord[] => {
    const place = { table: 'stir_key', column: 'private_key', row: row.id }
    const privateKey = secrets.open(place, row.private_key)
    if (privateKey === undefined) {
      onProblem(`the private key of STIR key ${row.id} cannot be read; enter it again`)
      return []
    }
    return [
      {
        id: row.id,
        tenantId: row.tenant_id,
        name: row.name,
        privateKey,
        certificate: row.certificate,
        x5u: row.x5u,
        validFrom: row.valid_from,
        validUntil: row.valid_until,
        isActive: fromFlag(row.is_active),
      },
    ]
  })
  const trusted = db
    .selectFrom('stir_authority')
    .select(['name', 'certificate'])
    .where('is_active', '=', 1)
    .orderBy('id')
  return { keys, authorities: await all(store, trusted) }
}
