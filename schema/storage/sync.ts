import { closeSync, fsyncSync, openSync } from 'node:fs'

/** Returns when a file, or a folder with its names, is on the disk. */
export function sync(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
