/**
 * Passwords of people: argon2id off the main thread, one at a time, with fair turns and bounded
 * queues.
 */
import { hash, hashSync, verifySync } from '@node-rs/argon2'
import { z } from 'zod'

/** Argon2id (the package's default), OWASP's second choice: 19 MiB, two passes, one lane; 10 ms. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

export const MIN_PASSWORD_LENGTH = 8
export const MAX_PASSWORD_LENGTH = 128

export const newPassword = z
  .string()
  .min(MIN_PASSWORD_LENGTH)
  .max(MAX_PASSWORD_LENGTH)
  .meta({ format: 'password' })

export const hashPassword = (password: string): Promise<string> => hash(password, cost)

/** The same on the calling thread, for commands, which serve no requests. */
export const hashPasswordNow = (password: string): string => hashSync(password, cost)

/** Checks at once, as `hashPasswordNow` hashes. */
export const isPasswordNow = (password: string, passwordHash: string): boolean =>
  verifySync(passwordHash, password)

/** Who logs in: strangers at the edge never stand before the staff. */
export type Lane = 'staff' | 'customers'
