// Only for this folder: `import … from 'millrace'` in an example resolves to this file, which exports the built package.
// Your own project needs no such file; `npm install millrace` is enough.
export * from '../dist/index.js'
