/**
 * Property tests (fast-check) take the same ways in every run, so that a red run means the change
 * and not the day. `PROPERTY_SEED=N` takes others, `PROPERTY_SEED=random` new ones; a failure
 * prints its seed either way.
 */
import fc from 'fast-check'

const wanted = process.env['PROPERTY_SEED'] ?? '20261120'

if (wanted !== 'random') fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(wanted) })
