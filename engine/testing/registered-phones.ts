/** Phones of extensions that are registered, as a REGISTER would have stored them. */
import type { LocalStore } from '../../schema/storage/store.ts'
import { all } from '../../schema/sql/query.ts'

/** An address of documentation (RFC 5737), which no network has. */
const ADDRESS = '198.51.100.1'
const FIRST_PORT = 10_000
const LIFETIME_MS = 3_600_000

/** @param phones `101@acme.example`. @throws {Error} there is no such extension. */
export async function registerPhones(
  store: LocalStore,
  phones: readonly string[],
  now: number,
): Promise<void> {
  for (const [index, phone] of phones.entries()) {
    const { extension, domain } = extensionIn(phone)
    const query = store.db
      .selectFrom('extension')
      .select('id')
      .where('extension', '=', extension)
      .where('domain', '=', domain)
    const [found] = await all(store, query)
    if (found === undefined) throw new Error(`phones: there is no extension ${phone}`)
    const source_port = FIRST_PORT + index
    await store.db
      .insertInto('binding')
      .values({
        extension_id: found.id,
        contact: `sip:${extension}@${ADDRESS}:${source_port}`,
        instance: null,
        reg_id: null,
        q: 1_000,
        call_id: `phone-${index}`,
        cseq: 1,
        path: '[]',
        user_agent: 'test kit',
        source_protocol: 'udp',
        source_address: ADDRESS,
        source_port,
        node: 'test',
        registered_at: now,
        expires_at: now + LIFETIME_MS,
      })
      .execute()
  }
}

/** @throws {Error} it is not like `101@acme.example`. */
export function extensionIn(text: string): { readonly extension: string; readonly domain: string } {
  const [extension = '', domain = '', ...rest] = text.split('@')
  if (extension === '' || domain === '' || rest.length > 0)
    throw new Error(`${text} is not like 101@acme.example`)
  return { extension, domain: domain.toLowerCase() }
}
