/** Phones of tests that share one program: those of each test belong to a tenant of its own. */
import { afterAll, beforeAll } from 'vitest'
import { TollgateProcess, type StoredCall } from './tollgate-process.ts'
import { twoPhones } from './two-phones.ts'
import { eventually } from './waiting.ts'

/** The things that a test has of its own: the phones 101 and 102 of a tenant. */
export interface OwnPhones {
  readonly tollgate: TollgateProcess
  readonly domain: string
  /** As of `TollgateProcess`, of its own calls. */
  waitForCalls(count: number): Promise<StoredCall[]>
  /** The bindings of its phones, the oldest first. */
  bindings(): readonly { readonly source_protocol: string }[]
}

/**
 * One program for the tests of a file, of which there are so many; each asks for its part of it
 * once.
 */
export function sharePhones(
  tests: number,
  environment: Readonly<Record<string, string>> = {},
): () => OwnPhones {
  const slugs = Array.from({ length: tests }, (_, index) => `acme-${index}`)
  let tollgate: TollgateProcess | undefined
  beforeAll(async () => {
    const seed = {
      tenants: slugs.map((slug) => ({ slug, domains: [`${slug}.example`] })),
      extensions: slugs.flatMap((tenant) =>
        twoPhones.extensions.map((extension) => ({ ...extension, tenant })),
      ),
    }
    tollgate = await TollgateProcess.start(seed, environment)
  })
  afterAll(() => tollgate?.stop())
  const left = [...slugs]
  return () => {
    const slug = left.pop()
    if (tollgate === undefined || slug === undefined) throw new Error('there is no tenant left')
    return ownPhones(tollgate, slug)
  }
}

function ownPhones(tollgate: TollgateProcess, slug: string): OwnPhones {
  const calls = (): StoredCall[] =>
    tollgate.query<StoredCall>(
      `SELECT cdr.* FROM cdr JOIN tenant ON tenant.id = cdr.tenant_id WHERE tenant.slug = ?
       ORDER BY cdr.end_stamp, cdr.id`,
      slug,
    )
  return {
    tollgate,
    domain: `${slug}.example`,
    waitForCalls: (count) =>
      eventually(() => {
        const stored = calls()
        if (stored.length < count) throw new Error(`${stored.length} of ${count} calls are stored`)
        return stored
      }),
    bindings: () =>
      tollgate.query<{ source_protocol: string }>(
        `SELECT binding.source_protocol FROM binding
         JOIN extension ON extension.id = binding.extension_id
         JOIN tenant ON tenant.id = extension.tenant_id WHERE tenant.slug = ? ORDER BY binding.id`,
        slug,
      ),
  }
}
