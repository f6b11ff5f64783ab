// Only for this folder, as millrace.js is: `import … from 'millrace/testing'` in an example resolves to this file.
export * from '../dist/testing/index.js'
